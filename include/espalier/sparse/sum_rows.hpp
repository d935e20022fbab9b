// One row of the product of a 0/1 matrix and a sparse matrix, in integers: the sum of some sparse rows.
//
// Sums of uint64 are exact and may be formed in any order. The result lists the columns with a positive sum,
// ascending: hypersparse, O(its entries), never an array as long as a row is wide. Two ways, by what the
// entries cost: where they are many for the number of columns, the columns are walked in tiles of kTile, each
// summed in a dense array that stays in cache (every row keeps a cursor); where they are few, they are sorted.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "espalier/base/buffer.hpp"

namespace espalier {

/// A sparse vector of exact sums: columns ascending, sums positive.
template <class Index>
struct SparseSum {
  Buffer<Index> columns;
  Buffer<std::uint64_t> sums;

  void clear() {
    columns.clear();
    sums.clear();
  }
  void add(Index column, std::uint64_t sum) {
    columns.push_back(column);
    sums.push_back(sum);
  }
};

namespace detail {

constexpr std::int64_t kTile = 32768;

template <class Index, class Row, class Weight>
void sum_in_tiles(std::span<const Row> rows, std::int64_t columns, Weight weight, SparseSum<Index>& out) {
  std::vector<std::int64_t> cursor(rows.size(), 0);
  std::vector<std::uint64_t> tile(static_cast<std::size_t>(std::min(kTile, columns)), 0);
  for (std::int64_t first = 0; first < columns; first += kTile) {
    const auto end = std::min(first + kTile, columns);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      auto k = cursor[r];
      for (; k < rows[r].size && rows[r].indices[k] < end; ++k)
        tile[static_cast<std::size_t>(rows[r].indices[k] - first)] += weight(rows[r], k);
      cursor[r] = k;
    }
    for (std::int64_t column = first; column < end; ++column) {
      auto& sum = tile[static_cast<std::size_t>(column - first)];
      if (sum > 0) out.add(static_cast<Index>(column), std::exchange(sum, 0));
    }
  }
}

template <class Index, class Row, class Weight>
void sum_by_sorting(std::span<const Row> rows, std::int64_t entries, Weight weight, SparseSum<Index>& out) {
  std::vector<std::pair<Index, std::uint64_t>> all;
  all.reserve(static_cast<std::size_t>(entries));
  for (const auto& row : rows)
    for (std::int64_t k = 0; k < row.size; ++k)
      if (const auto w = weight(row, k); w > 0) all.emplace_back(row.indices[k], w);
  std::sort(all.begin(), all.end());
  for (const auto& [column, w] : all)
    if (!out.columns.empty() && out.columns.back() == column)
      out.sums.back() += w;
    else
      out.add(column, w);
}

}  // namespace detail

/// out = the sum of `rows` over [0, columns), entry k of a row counting weight(row, k). Row: anything with
/// ascending `indices` and `size`. Sums must stay below 2^64. Not collective.
template <class Index, class Row, class Weight>
void sum_rows(std::span<const Row> rows, std::int64_t columns, Weight weight, SparseSum<Index>& out) {
  out.clear();
  std::int64_t entries = 0;
  for (const auto& row : rows) entries += row.size;
  const auto visits = columns / 32 + (columns / detail::kTile) * std::ssize(rows) / 4;
  if (entries > visits)
    detail::sum_in_tiles(rows, columns, weight, out);
  else
    detail::sum_by_sorting(rows, entries, weight, out);
}

}  // namespace espalier
