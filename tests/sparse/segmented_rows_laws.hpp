// Laws of rows in segments, for every space: what is summed, stacked, merged and selected equals
// loops over a map, segment by segment, however many segments a budget lets it work on at once.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "espalier/base/philox.hpp"
#include "mpi_test.hpp"
#include "sparse/listed.hpp"
#include "sparse/row_lists.hpp"

namespace espalier {

// ---- Both spaces called alike -------------------------------------------------------------------

/// Columns are summed in tiles: what a budget holds for one segment.
inline std::int64_t dense_sum_bytes(std::int64_t columns) {
  constexpr std::int64_t kTileColumns = 1024;
  return 8 * std::max<std::int64_t>((columns + kTileColumns - 1) / kTileColumns, 1) * kTileColumns;
}

/// How a space is to work: with so many threads, or on so many segments at a time (0: as
/// it chooses).
template <class Space>
struct Way {
  const Space& space;
  std::int64_t at_once = 0;

  template <class Index>
  void sum_segments(const SegmentedRows<Index, Space>& rows, const EntryWeight& weight,
                    const SumVisitor<Index, Space>& visit) const {
    if constexpr (std::is_same_v<Space, Cuda>)
      espalier::sum_segments(space, rows, weight, visit, at_once * dense_sum_bytes(rows.columns));
    else
      espalier::sum_segments(space, rows, weight, visit);
  }
  template <class Index>
  void merge_sums(const Sums<Index, Space>& partial, const SharedList<std::int64_t, Space>& segment_of,
                  std::int64_t count, std::int64_t columns, const SumVisitor<Index, Space>& visit) const {
    if constexpr (std::is_same_v<Space, Cuda>)
      espalier::merge_sums(space, partial, segment_of, count, columns, visit,
                           at_once * dense_sum_bytes(columns));
    else
      espalier::merge_sums(space, partial, segment_of, count, columns, visit);
  }
  template <class Index>
  Entries<std::int32_t, Space> select_columns(const SegmentedRows<Index, Space>& rows, const Index* columns,
                                              const SharedList<std::int64_t, Space>& offsets) const {
    if constexpr (std::is_same_v<Space, Cuda>)
      return espalier::select_columns(space, rows, columns, offsets, at_once * (rows.columns / 4));
    else
      return espalier::select_columns(space, rows, columns, offsets);
  }
};

// ---- The oracle: loops over a map ---------------------------------------------------------------

inline const std::vector<EntryWeight> kWeights = {{}, {.skip_zeros = true}, {.squared = true, .shift = 20}};

// Values are k/8, so a square is k^2 2^(shift - 6); an entry without a value counts as 1.
inline std::uint64_t weigh(const EntryWeight& weight, const float* value) {
  const auto eighths = value == nullptr ? 8 : static_cast<std::uint64_t>(8 * *value);
  if (weight.squared) return eighths * eighths << (weight.shift - 6);
  return weight.skip_zeros && eighths == 0 ? 0 : 1;
}

inline ListedSum without_zeros(std::map<std::int64_t, std::uint64_t> sums) {
  std::erase_if(sums, [](const auto& entry) { return entry.second == 0; });
  return {sums.begin(), sums.end()};
}

template <class Index>
std::vector<ListedSum> sums_by_loop(const Csr<Index>& matrix, const RowLists& lists,
                                    const EntryWeight& weight) {
  std::vector<ListedSum> all;
  for (std::int64_t list = 0; list < lists.count(); ++list) {
    std::map<std::int64_t, std::uint64_t> sums;
    for (const auto row : lists.list(list))
      for (auto k = matrix.row_begin(row); k < matrix.row_end(row); ++k)
        sums[matrix.indices[k]] += weigh(weight, matrix.has_values() ? &matrix.values[k] : nullptr);
    all.push_back(without_zeros(std::move(sums)));
  }
  return all;
}

// ---- Sums ---------------------------------------------------------------------------------------

template <class Index, class Space>
void expect_sums(const Way<Space>& way, const Csr<Index>& matrix, const RowLists& lists) {
  const auto rows = cut(way.space, matrix, lists);
  for (const auto& weight : kWeights) {
    const auto expected = sums_by_loop(matrix, lists, weight);
    VisitedSums visited(lists.count());
    way.sum_segments(rows.segments, weight, visited.template visitor<Index>(way.space));
    EXPECT_TRUE(visited.is_each_once());
    EXPECT_TRUE(visited.sums == expected);
    EXPECT_TRUE(listed(way.space, stack_sums(way.space, rows.segments, weight)) == expected) << "stacked";
  }
}

/// Around the borders of tiles, of pieces of rows and of chunks of rows.
template <class Index, class Space>
void expect_sums_of_awkward_lists(const Way<Space>& way) {
  using Sizes = std::vector<std::int64_t>;
  for (const auto n : way.at_once == 0 ? Sizes{5, 33, 1023, 1024, 1025, 2500} : Sizes{33, 1025})
    for (const bool weighted : {false, true}) {
      SCOPED_TRACE(fmt::format("n {} values {} at once {}", n, weighted, way.at_once));
      expect_sums(way, random_graph<Index>(n, 9, weighted, 3), awkward_lists(n));
    }
}

// ---- Merged sums --------------------------------------------------------------------------------

/// Sums to merge, and the segment that each of them belongs to.
template <class Index>
struct PartialSums {
  std::vector<Index> columns;
  std::vector<std::uint64_t> sums;
  std::vector<std::int64_t> offsets = {0}, segment_of;
};

// Every third list is without entries; the first and the last segment, and one between,
// get no list.
template <class Index>
PartialSums<Index> random_partial_sums(std::int64_t lists, std::int64_t segments, std::int64_t columns) {
  PartialSums<Index> partial;
  for (std::int64_t list = 0; list < lists; ++list) {
    const RandomStream stream = {.seed = test_seed(61), .row = static_cast<std::uint64_t>(list)};
    for (std::int64_t column = 0; list % 3 != 2 && column < columns; ++column) {
      const auto word = random64(stream, column);
      if (word % 4 != 0) continue;
      partial.columns.push_back(static_cast<Index>(column));
      partial.sums.push_back(1 + (word >> 8));
    }
    partial.offsets.push_back(std::ssize(partial.columns));
    auto segment = 1 + static_cast<std::int64_t>(random_below(stream, columns, segments - 2));
    if (segment == segments / 2) --segment;
    partial.segment_of.push_back(segment);
  }
  return partial;
}

template <class Index, class Space>
void expect_merged(const Way<Space>& way, const PartialSums<Index>& partial, std::int64_t segments,
                   std::int64_t columns) {
  std::vector<std::map<std::int64_t, std::uint64_t>> sums(segments);
  for (std::size_t list = 0; list < partial.segment_of.size(); ++list)
    for (auto k = partial.offsets[list]; k < partial.offsets[list + 1]; ++k)
      sums[partial.segment_of[list]][partial.columns[k]] += partial.sums[k];
  std::vector<ListedSum> expected;
  for (auto& sum : sums) expected.push_back(without_zeros(std::move(sum)));

  const Sums<Index, Space> stacked = {{way.space, partial.offsets},
                                      copy_to<Index>(way.space, partial.columns),
                                      copy_to<std::uint64_t>(way.space, partial.sums)};
  VisitedSums visited(segments);
  way.merge_sums(stacked, {way.space, partial.segment_of}, segments, columns,
                 visited.template visitor<Index>(way.space));
  EXPECT_TRUE(visited.is_each_once());
  EXPECT_TRUE(visited.sums == expected);
}

template <class Index, class Space>
void expect_merged_sums(const Way<Space>& way) {
  for (const std::int64_t columns : {1, 1024, 2100})
    for (const std::int64_t lists : {0, 1, 5, 40}) {
      SCOPED_TRACE(
          fmt::format("columns {} lists {} seed {} at once {}", columns, lists, test_seed(61), way.at_once));
      expect_merged(way, random_partial_sums<Index>(lists, 11, columns), 11, columns);
    }
  expect_merged(way, PartialSums<Index>{}, 0, 10);
  // Lists all of which are without entries.
  expect_merged(
      way, PartialSums<Index>{.columns = {}, .sums = {}, .offsets = {0, 0, 0, 0}, .segment_of = {1, 0, 1}}, 3,
      10);
}

// ---- Columns ------------------------------------------------------------------------------------

/// The columns of each segment: none, all, or some.
template <class Index>
struct ColumnLists {
  std::vector<Index> ids;
  std::vector<std::int64_t> offsets = {0};
};

template <class Index>
ColumnLists<Index> some_columns(std::int64_t segments, std::int64_t n) {
  ColumnLists<Index> columns;
  for (std::int64_t s = 0; s < segments; ++s) {
    const std::int64_t one_in = s % 4 == 0 ? n + 1 : s % 4 == 1 ? 1 : 1 + s;
    for (std::int64_t v = 0; v < n; ++v)
      if ((v + 1) % one_in == 0) columns.ids.push_back(static_cast<Index>(v));
    columns.offsets.push_back(std::ssize(columns.ids));
  }
  return columns;
}

// Row after row; `values`: 0 where the matrix has none.
template <class Index>
std::vector<ListedRow> selection_by_loop(const Csr<Index>& matrix, const RowLists& lists,
                                         const ColumnLists<Index>& columns) {
  std::vector<ListedRow> all;
  for (std::int64_t list = 0; list < lists.count(); ++list) {
    std::map<Index, std::int64_t> place;
    for (auto k = columns.offsets[list]; k < columns.offsets[list + 1]; ++k)
      place[columns.ids[k]] = k - columns.offsets[list];
    for (const auto row : lists.list(list)) {
      ListedRow met;
      for (auto k = matrix.row_begin(row); k < matrix.row_end(row); ++k)
        if (const auto found = place.find(matrix.indices[k]); found != place.end())
          met.emplace_back(found->second, matrix.has_values() ? matrix.values[k] : 0.0f);
      all.push_back(std::move(met));
    }
  }
  return all;
}

template <class Index, class Space>
void expect_selection(const Way<Space>& way, const Csr<Index>& matrix, const RowLists& lists) {
  const auto rows = cut(way.space, matrix, lists);
  const auto columns = some_columns<Index>(lists.count(), matrix.columns);
  const auto ids = copy_to<Index>(way.space, columns.ids);
  const auto selected =
      way.template select_columns<Index>(rows.segments, ids.data(), {way.space, columns.offsets});
  expect_rows(to_host(way.space, selected), selection_by_loop(matrix, lists, columns), matrix.has_values());
}

template <class Index, class Space>
void expect_selections(const Way<Space>& way) {
  using Sizes = std::vector<std::int64_t>;
  for (const auto n : way.at_once == 0 ? Sizes{5, 32, 33, 700, 1100} : Sizes{33, 700})
    for (const bool weighted : {false, true}) {
      SCOPED_TRACE(fmt::format("n {} values {} at once {}", n, weighted, way.at_once));
      expect_selection(way, random_graph<Index>(n, 9, weighted, 4), awkward_lists(n));
    }
}

// ---- Nothing at all -----------------------------------------------------------------------------

template <class Index, class Space>
void expect_nothing_of_nothing(const Way<Space>& way) {
  const auto matrix = random_graph<Index>(40, 3, true, 5);
  expect_sums(way, matrix, RowLists{});
  expect_selection(way, matrix, RowLists{});
}

/// Sums and columns of the same rows, one after the other, in either order: what the first leaves
/// behind is right.
template <class Index, class Space>
void expect_both_of_the_same_rows(const Way<Space>& way) {
  const auto matrix = random_graph<Index>(700, 9, true, 6);
  const auto lists = awkward_lists(700);
  const auto rows = cut(way.space, matrix, lists);
  const auto columns = some_columns<Index>(lists.count(), matrix.columns);
  const auto ids = copy_to<Index>(way.space, columns.ids);
  const SharedList<std::int64_t, Space> offsets(way.space, columns.offsets);
  const auto met = selection_by_loop(matrix, lists, columns);
  expect_rows(to_host(way.space, way.select_columns(rows.segments, ids.data(), offsets)), met, true);
  EXPECT_TRUE(listed(way.space, stack_sums(way.space, rows.segments, {})) == sums_by_loop(matrix, lists, {}));
  expect_rows(to_host(way.space, way.select_columns(rows.segments, ids.data(), offsets)), met, true);
}

}  // namespace espalier
