// The hierarchy of clusters: a sequence is halved, its halves are halved, down to single clusters.
// A cluster's code is its way down, a bit for each depth, first half 0; where nothing is left
// to halve the way goes on with 0. Two clusters part at the depth of the first bit in which
// their codes differ. Node 2^d + c is the part of depth d that codes beginning with c are in;
// node 1 is all.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace espalier {

class ClusterTree {
 public:
  explicit ClusterTree(int clusters) : depth_(std::bit_width(static_cast<unsigned>(clusters - 1))) {
    count_.assign(std::size_t{2} << depth_, 0);
    count_[1] = clusters;
    for (std::size_t node = 1; node < (std::size_t{1} << depth_); ++node) {
      count_[2 * node] = count_[node] - count_[node] / 2;
      count_[2 * node + 1] = count_[node] / 2;
    }
    number_.assign(std::size_t{1} << depth_, -1);
    for (int code = 0; code < (1 << depth_); ++code)
      if (count_[node(code, depth_)] > 0) {
        number_[code] = static_cast<int>(code_.size());
        code_.push_back(static_cast<std::uint16_t>(code));
      }
  }

  int clusters() const { return static_cast<int>(code_.size()); }
  int depth() const { return depth_; }
  int nodes() const { return 2 << depth_; }
  /// The clusters below a node.
  int clusters_below(int node) const { return count_[node]; }
  std::uint16_t code(int cluster) const { return code_[cluster]; }
  /// The cluster with this code; codes and clusters ascend together.
  int cluster(int code) const { return number_[code]; }
  int node(int code, int depth) const { return (1 << depth) + (code >> (depth_ - depth)); }
  /// What a cut at the scale of a node counts: up to 32 parts, what most grids have, twice.
  int scale_weight(std::int64_t node) const { return node < (2 << kDoubled) ? 2 : 1; }
  /// What an edge between two clusters costs: the weights of the scales at which they are in
  /// different parts.
  int price_between(int a, int b) const {
    const int first = parting(a, b);
    return depth_ + 1 - first + std::max(std::min(kDoubled, depth_) + 1 - first, 0);
  }
  /// The first depth at which two codes are in different nodes; depth() + 1 for equal ones.
  int parting(int a, int b) const { return depth_ + 1 - std::bit_width(static_cast<unsigned>(a ^ b)); }

 private:
  static constexpr int kDoubled = 5;  // depths
  int depth_;
  std::vector<int> count_;           // [nodes]
  std::vector<int> number_;          // [2^depth]
  std::vector<std::uint16_t> code_;  // [clusters]
};

}  // namespace espalier
