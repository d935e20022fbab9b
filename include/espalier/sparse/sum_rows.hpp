// A row of the product of a 0/1 matrix and a sparse matrix, in integers: a sum of sparse rows.
//
// Sums of uint64 are exact and may be formed in any order. The result lists the columns with a
// positive sum, ascending. Two ways, by what the entries cost: where they are many for the number
// of columns, the columns are walked in tiles of kTile, each summed in a dense array that stays in
// the second cache (every row keeps a cursor); where they are few, they are sorted. Rows that have
// kLongRun entries in a kSubtile walk a tile in subtiles, which stay in the first cache.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "espalier/base/buffer.hpp"
#include "espalier/base/execution.hpp"

#if defined(__AVX512F__) && defined(__AVX512VL__) && !defined(__CUDACC__)
#include <immintrin.h>
#define ESPALIER_COMPRESSES_SUMS
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
  void resize(std::size_t size) {
    columns.resize(size);
    sums.resize(size);
  }
};

/// Columns [begin, end) of a matrix.
struct ColumnRange {
  std::int64_t begin, end;
};

namespace detail {

constexpr std::int64_t kTile = 65536, kSubtile = 4096, kLongRun = 16, kGroup = 64;

/// Where a row's entries go on.
template <class Index, class Row>
struct RowCursor {
  const Row* row;
  const Index* next;
  const Index* end;
  std::uint64_t of_all;  ///< what each of its entries counts, where all count the same
};

template <class Index, class Row, class Weight>
std::vector<RowCursor<Index, Row>> open_rows(std::span<const Row> rows, std::int64_t begin,
                                             bool equal_in_rows, Weight& weight) {
  std::vector<RowCursor<Index, Row>> cursors;
  cursors.reserve(rows.size());
  for (const auto& row : rows) {
    const Index* const end = row.indices + row.size;
    const Index* const next =
        begin == 0 ? row.indices : std::lower_bound(row.indices, end, static_cast<Index>(begin));
    if (next != end) cursors.push_back({&row, next, end, equal_in_rows ? weight(row, 0) : 0});
  }
  return cursors;
}

/// Adds the entries below column `end` to tile[column - first]. The rows that follow are asked for
/// meanwhile: a processor foresees the lines of one row, not the next row.
template <bool kEqualInRows, class Index, class Row, class Weight>
void add_until(std::span<RowCursor<Index, Row>> cursors, std::int64_t end, std::int64_t first, Weight& weight,
               std::uint64_t* tile) {
  constexpr std::size_t kAhead = 8;
  constexpr int kLines = 4, kAtOnce = 8;
  for (std::size_t r = 0; r < cursors.size(); ++r) {
    if (r + kAhead < cursors.size())
      for (int line = 0; line < kLines; ++line)
        __builtin_prefetch(cursors[r + kAhead].next + line * static_cast<int>(64 / sizeof(Index)));
    auto& cursor = cursors[r];
    const Index* k = cursor.next;
    if constexpr (kEqualInRows) {
      const auto of_all = cursor.of_all;
      for (; cursor.end - k >= kAtOnce && k[kAtOnce - 1] < end; k += kAtOnce)
        for (int i = 0; i < kAtOnce; ++i) tile[k[i] - first] += of_all;
      for (; k < cursor.end && *k < end; ++k) tile[*k - first] += of_all;
    } else {
      const auto& row = *cursor.row;
      for (; k < cursor.end && *k < end; ++k) tile[*k - first] += weight(row, k - row.indices);
    }
    cursor.next = k;
  }
}

/// Appends what is positive of the sums of `columns`, of which the first is tile[0], and clears
/// them. A tile is read in whole groups, written behind the result's end in whole vectors.
template <class Index>
void take_positive(std::uint64_t* tile, ColumnRange columns, SparseSum<Index>& out) {
  auto count = out.columns.size();
  out.resize(count + static_cast<std::size_t>(columns.end - columns.begin + kGroup));
  Index* const ids = out.columns.data();
  std::uint64_t* const sums = out.sums.data();
  for (auto group = columns.begin; group < columns.end; group += kGroup) {
    std::uint64_t* const of_group = tile + (group - columns.begin);
#ifdef ESPALIER_COMPRESSES_SUMS
    for (int k = 0; k < kGroup; k += 8) {
      const auto eight = _mm512_loadu_si512(of_group + k);
      const auto positive = _mm512_test_epi64_mask(eight, eight);
      _mm512_storeu_si512(sums + count, _mm512_maskz_compress_epi64(positive, eight));
      const auto id = _mm512_maskz_compress_epi64(positive, _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7));
      const auto from = static_cast<Index>(group + k);
      if constexpr (sizeof(Index) == 4)
        _mm256_storeu_si256(
            reinterpret_cast<__m256i*>(ids + count),
            _mm256_maskz_add_epi32(0xff, _mm256_set1_epi32(from), _mm512_maskz_cvtepi64_epi32(0xff, id)));
      else
        _mm512_storeu_si512(ids + count, _mm512_maskz_add_epi64(0xff, _mm512_set1_epi64(from), id));
      count += static_cast<std::size_t>(std::popcount(static_cast<unsigned>(positive)));
    }
#else
    std::uint64_t positive = 0;
    for (int k = 0; k < kGroup; ++k) positive |= static_cast<std::uint64_t>(of_group[k] != 0) << k;
    for (; positive != 0; positive &= positive - 1, ++count) {
      const auto k = std::countr_zero(positive);
      ids[count] = static_cast<Index>(group + k);
      sums[count] = of_group[k];
    }
#endif
    std::fill_n(of_group, kGroup, std::uint64_t{0});
  }
  out.resize(count);
}

/// Appends the sums of `range`.
template <bool kEqualInRows, class Index, class Row, class Weight>
void sum_in_tiles(std::span<const Row> rows, ColumnRange range, std::int64_t columns, Weight weight,
                  const SparseSum<Index>& earlier, SparseSum<Index>& out) {
  auto cursors = open_rows<Index>(rows, range.begin, kEqualInRows, weight);
  const auto first_long = std::partition(cursors.begin(), cursors.end(), [&](const auto& cursor) {
    return cursor.row->size * kSubtile < kLongRun * columns;
  });
  const std::span short_rows(cursors.begin(), first_long), long_rows(first_long, cursors.end());
  auto* const tile = workspace<struct SummedTile, std::uint64_t>(kTile).data();
  std::fill_n(tile, (std::min(kTile, range.end - range.begin) + kGroup - 1) / kGroup * kGroup,
              std::uint64_t{0});
  auto of_earlier = static_cast<std::size_t>(
      std::lower_bound(earlier.columns.begin(), earlier.columns.end(), static_cast<Index>(range.begin)) -
      earlier.columns.begin());
  for (auto first = range.begin; first < range.end; first += kTile) {
    const auto end = std::min(first + kTile, range.end);
    for (; of_earlier < earlier.columns.size() && earlier.columns[of_earlier] < end; ++of_earlier)
      tile[earlier.columns[of_earlier] - first] = earlier.sums[of_earlier];
    add_until<kEqualInRows>(short_rows, end, first, weight, tile);
    for (auto subtile = first; subtile < end && !long_rows.empty(); subtile += kSubtile)
      add_until<kEqualInRows>(long_rows, std::min(subtile + kSubtile, end), first, weight, tile);
    take_positive(tile, {first, end}, out);
  }
}

template <class Index, class Row, class Weight>
void sum_by_sorting(std::span<const Row> rows, std::int64_t entries, Weight weight,
                    const SparseSum<Index>& earlier, SparseSum<Index>& out) {
  std::vector<std::pair<Index, std::uint64_t>> all;
  all.reserve(entries);
  for (const auto& row : rows)
    for (std::int64_t k = 0; k < row.size; ++k)
      if (const auto w = weight(row, k); w > 0) all.emplace_back(row.indices[k], w);
  std::sort(all.begin(), all.end());
  std::size_t next = 0;
  const auto add_earlier_until = [&](Index end) {
    for (; next < earlier.columns.size() && earlier.columns[next] <= end; ++next)
      out.add(earlier.columns[next], earlier.sums[next]);
  };
  for (const auto& [column, w] : all) {
    add_earlier_until(column);
    if (!out.columns.empty() && out.columns.back() == column)
      out.sums.back() += w;
    else
      out.add(column, w);
  }
  if (!earlier.columns.empty()) add_earlier_until(earlier.columns.back());
}

}  // namespace detail

/// out = earlier + the sum of `rows` over [0, columns), entry k of a row counting weight(row, k);
/// equal_in_rows: all entries of a row count what its first counts. Row: anything with ascending
/// `indices` and `size`; each thread has a copy of `weight`. Sums must stay below 2^64. Not
/// collective.
template <class Index, class Row, class Weight>
void sum_rows(const Cpu& cpu, std::span<const Row> rows, std::int64_t columns, const Weight& weight,
              SparseSum<Index>& out, bool equal_in_rows = false, const SparseSum<Index>& earlier = {}) {
  out.clear();
  std::int64_t entries = 0;
  for (const auto& row : rows) entries += row.size;
  const auto tiles = (columns + detail::kTile - 1) / detail::kTile;
  const auto visits = columns / 32 + columns / detail::kTile * std::ssize(rows) / 4;
  if (entries + std::ssize(earlier.columns) / 4 <= visits)
    return detail::sum_by_sorting(rows, entries, weight, earlier, out);
  const auto sum_range = [&](ColumnRange range, SparseSum<Index>& to) {
    if (equal_in_rows)
      detail::sum_in_tiles<true>(rows, range, columns, weight, earlier, to);
    else
      detail::sum_in_tiles<false>(rows, range, columns, weight, earlier, to);
  };
  const auto parts = std::min<std::int64_t>(cpu.threads, tiles);
  if (parts == 1) return sum_range({0, columns}, out);
  std::vector<SparseSum<Index>> pieces(parts);
#pragma omp parallel for num_threads(static_cast <int>(parts)) schedule(static, 1)
  for (std::int64_t part = 0; part < parts; ++part)
    sum_range(
        {tiles * part / parts * detail::kTile, std::min(columns, tiles * (part + 1) / parts * detail::kTile)},
        pieces[part]);
  for (const auto& piece : pieces) {
    out.columns.insert(out.columns.end(), piece.columns.begin(), piece.columns.end());
    out.sums.insert(out.sums.end(), piece.sums.begin(), piece.sums.end());
  }
}

}  // namespace espalier
