// A row of the product of a 0/1 matrix and a sparse matrix, in integers: a sum of sparse rows.
//
// Sums of uint64 are exact and may be formed in any order. The result lists the columns with a
// positive sum, ascending. Two ways, by what the entries cost: where they are many for the number
// of columns, the columns are walked in tiles of kTile, each summed in a dense array that stays in
// cache (every row keeps a cursor); where they are few, they are sorted.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "espalier/base/buffer.hpp"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

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

constexpr std::int64_t kTile = 65536, kGroup = 64;

/// Bit k: is sums[k] > 0? For k < kGroup.
inline std::uint64_t positive_sums(const std::uint64_t* sums) {
  std::uint64_t bits = 0;
#if defined(__AVX512F__)
  for (int k = 0; k < kGroup; k += 8) {
    const auto eight = _mm512_loadu_si512(sums + k);
    bits |= static_cast<std::uint64_t>(_mm512_test_epi64_mask(eight, eight)) << k;
  }
#else
  for (int k = 0; k < kGroup; ++k) bits |= static_cast<std::uint64_t>(sums[k] != 0) << k;
#endif
  return bits;
}

template <class Index, class Row, class Weight>
void sum_in_tiles(std::span<const Row> rows, std::int64_t columns, Weight weight, SparseSum<Index>& out) {
  std::vector<std::int64_t> cursor(rows.size(), 0);
  // Groups are read whole.
  const auto widest = (std::min(kTile, columns) + kGroup - 1) / kGroup * kGroup;
  std::vector<std::uint64_t> tile(widest, 0);
  for (std::int64_t first = 0; first < columns; first += kTile) {
    const auto end = std::min(first + kTile, columns);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      auto k = cursor[r];
      for (; k < rows[r].size && rows[r].indices[k] < end; ++k)
        tile[rows[r].indices[k] - first] += weight(rows[r], k);
      cursor[r] = k;
    }
    for (auto group = first; group < end; group += kGroup)
      for (auto positive = positive_sums(tile.data() + (group - first)); positive != 0;
           positive &= positive - 1) {
        const auto column = group + std::countr_zero(positive);
        out.add(static_cast<Index>(column), std::exchange(tile[column - first], 0));
      }
  }
}

template <class Index, class Row, class Weight>
void sum_by_sorting(std::span<const Row> rows, std::int64_t entries, Weight weight, SparseSum<Index>& out) {
  std::vector<std::pair<Index, std::uint64_t>> all;
  all.reserve(entries);
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

/// out = the sum of `rows` over [0, columns), entry k of a row counting weight(row, k). Row:
/// anything with ascending `indices` and `size`. Sums must stay below 2^64. Not collective.
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
