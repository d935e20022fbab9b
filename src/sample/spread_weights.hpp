// One weight per vertex, spread over the block rows like A: inverse transform sampling in two levels.
//
// The axis 0 .. total is cut first by block row (p/c + 1 offsets that every rank has), then by vertex (prefix
// sums that only the rank of the block row has). A point is resolved by a binary search in the offsets, a
// message to the owner in the process column, and a binary search there.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "espalier/product/dist_csr.hpp"
#include "espalier/product/schedule.hpp"

namespace espalier {

/// The vertex whose interval [start, start + weight) of the axis holds a point.
struct Interval {
  std::int64_t vertex;
  std::uint64_t start;
  std::uint64_t weight;
};

/// What a rank of a process column of so many parts receives when it has `points` resolved that are spread evenly:
/// how many each of the others asks, a point and an Interval each.
inline Cost find_cost(int parts, double points) {
  return {3.0 * (parts - 1), 8.0 * (parts - 1) + crossing(parts) * points * (8 + sizeof(Interval))};
}

class SpreadWeights {
 public:
  SpreadWeights() = default;
  /// `mine`: the weights of the vertices of my block row. Their sum over all rows must stay below 2^64.
  /// Collective over the process column.
  template <class Index>
  SpreadWeights(const DistCsr<Index>& a, const std::vector<std::uint64_t>& mine);

  std::uint64_t total() const { return offsets_.back(); }
  /// How many vertices have a positive weight, everywhere.
  std::int64_t support() const { return support_; }

  /// [my vertices + 1] prefix sums of the weights of my block row, from where it begins on the axis.
  std::span<const std::uint64_t> prefix() const { return prefix_; }

  /// The interval of each point (< total). Collective over the process column.
  std::vector<Interval> find(std::span<const std::uint64_t> points, const std::string& label) const;

  /// All vertices of positive weight, ascending, to every rank: O(support). Collective over the process column.
  std::vector<Interval> all(const std::string& label) const;

 private:
  Interval find_mine(std::uint64_t point) const;

  const Communicator* column_ = nullptr;  // null: all weights are mine
  std::int64_t first_vertex_ = 0;
  int part_ = 0;
  std::vector<std::uint64_t> offsets_;  // [parts + 1] of the axis
  std::vector<std::uint64_t> prefix_;   // [my vertices + 1], absolute
  std::int64_t support_ = 0;
};

}  // namespace espalier
