// Laws of the meeting of a row and a list of columns: every common id once, by its place in both,
// ascending, whichever way is taken (search the row, or filter it and search the list).
#include "espalier/sparse/select_columns.hpp"

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

#include "espalier/base/philox.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

using Meetings = std::vector<std::pair<std::int64_t, std::int64_t>>;

template <class Index>
Meetings meetings(const std::vector<Index>& row, const std::vector<Index>& columns) {
  Meetings met;
  ColumnSelection<Index> selection;
  selection.choose(std::vector<Index>{1, 2, 3});  // what was chosen before leaves nothing behind
  selection.choose(columns);
  Buffer<std::int32_t> of_columns = {7, 9};  // what stands there stays
  Buffer<std::int64_t> of_row = {8};
  selection.meet(RowView<Index>{row.data(), nullptr, std::ssize(row)}, of_columns, of_row);
  EXPECT_EQ(of_columns.size(), of_row.size() + 1);
  EXPECT_EQ(of_columns[0] + of_columns[1] + of_row[0], 7 + 9 + 8);
  for (std::size_t i = 1; i < of_row.size(); ++i) met.emplace_back(of_columns[i + 1], of_row[i]);
  return met;
}

template <class Index>
Meetings brute_force(const std::vector<Index>& row, const std::vector<Index>& columns) {
  Meetings met;
  for (std::size_t c = 0; c < columns.size(); ++c)
    for (std::size_t k = 0; k < row.size(); ++k)
      if (row[k] == columns[c]) met.emplace_back(c, k);
  return met;
}

template <class Index>
class ColumnSelectionTest : public testing::Test {};
using Widths = testing::Types<std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(ColumnSelectionTest, Widths);

// `count` distinct ids below `ids`, ascending.
template <class Index>
std::vector<Index> random_list(std::size_t count, std::int64_t ids, std::uint64_t seed, std::uint64_t row) {
  std::set<Index> list;
  const RandomStream stream = {.seed = seed, .row = row};
  for (std::uint64_t draw = 0; list.size() < count; ++draw)
    list.insert(static_cast<Index>(random_below(stream, draw, static_cast<std::uint64_t>(ids))));
  return {list.begin(), list.end()};
}

// Lengths on either side of 256 times the other: 256 and 257 to 1, 768 and 769 to 3; rows longer
// than one pass of the filter; ids that agree modulo its size.
TYPED_TEST(ColumnSelectionTest, EqualsAllPairsForAllRatiosOfLengths) {
  const auto seed = test_seed(22);
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::uint64_t stream = 0;
  for (const std::size_t r : {0, 1, 3, 17, 127, 128, 256, 257, 768, 769})
    for (const std::size_t c : {0, 1, 3, 17, 64, 65, 200})
      for (const std::int64_t ids : {800, 1500, 5000, 1 << 20})
        for (int repeat = 0; repeat < 3; ++repeat) {
          const auto row = random_list<TypeParam>(r, ids, seed, stream++);
          const auto columns = random_list<TypeParam>(c, ids, seed, stream++);
          EXPECT_EQ(meetings(row, columns), brute_force(row, columns))
              << r << " in the row, " << c << " columns";
        }
}

// Of ids that share a bit of the filter, whatever its size, every third is a column, every second
// in the row; beside them neighbours that share none.
TYPED_TEST(ColumnSelectionTest, TellsIdsOfOneBitApart) {
  for (const std::int64_t together : {2, 7, 400}) {
    std::vector<TypeParam> row, columns;
    for (std::int64_t i = 0; i < together; ++i)
      for (const std::int64_t id : {i << 22, (i << 22) + 1 + i}) {
        if (i % 3 == 0) columns.push_back(static_cast<TypeParam>(id));
        if (i % 2 == 0) row.push_back(static_cast<TypeParam>(id));
      }
    EXPECT_EQ(meetings(row, columns), brute_force(row, columns)) << together;
    EXPECT_EQ(meetings(columns, row), brute_force(columns, row)) << together;
  }
}

}  // namespace
}  // namespace espalier
