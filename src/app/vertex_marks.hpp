// One bit per vertex, set by whatever rank meets the vertex.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "espalier/base/mix.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/graph/row_range.hpp"

namespace espalier {

/// Bits of n vertices, grouped by the rank that has the vertex in its even range.
class VertexMarks {
 public:
  VertexMarks(std::int64_t n, int ranks) : n_(n), ranks_(ranks) {
    std::int64_t bytes = 0;
    for (int r = 0; r < ranks; ++r) {
      starts_.push_back(bytes);
      sizes_.push_back((even_range(n, ranks, r).size() + 7) / 8);
      bytes += sizes_.back();
    }
    bits_.assign(bytes, 0);
  }
  void mark(std::int64_t v) {
    const auto r = even_owner(n_, ranks_, v);
    const auto bit = v - even_range(n_, ranks_, r).begin;
    bits_[starts_[r] + bit / 8] |= static_cast<std::uint8_t>(1u << bit % 8);
  }
  /// The vertex of a row, where the row has entries.
  void mark_row(std::int64_t row, std::int64_t entries) {
    if (entries > 0) mark(row);
  }
  /// Collective. How many vertices has no rank marked?
  std::int64_t count_unmarked(const Communicator& world, const char* label) const {
    const auto got = world.all_to_all_v(std::span<const std::uint8_t>(bits_), sizes_, label);
    std::vector<std::uint8_t> marked(sizes_[world.rank()], 0);
    for (std::size_t k = 0; k < got.data.size(); ++k) marked[k % marked.size()] |= got.data[k];
    auto unmarked = even_range(n_, ranks_, world.rank()).size();
    for (const auto byte : marked) unmarked -= std::popcount(byte);
    return world.all_reduce(unmarked, Reduction::kSum, label);
  }

 private:
  std::int64_t n_;
  int ranks_;
  std::vector<std::int64_t> sizes_, starts_;
  std::vector<std::uint8_t> bits_;
};

/// A hash of an edge, which differs for the edge the other way round. Sums of it compare sets
/// of edges.
inline std::uint64_t edge_hash(std::int64_t row, std::int64_t column) {
  return absorb(absorb(0, row), column);
}

}  // namespace espalier
