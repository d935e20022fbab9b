// Laws of the sum of sparse rows: it equals a map from column to sum, whether tiles or sorting
// compute it, at every tile border, for both index widths; columns that sum to zero are not listed.
#include "espalier/sparse/sum_rows.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "espalier/base/philox.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

constexpr std::int64_t kTile = detail::kTile;

template <class Index>
struct Row {
  const Index* indices;
  const std::uint64_t* weights;
  std::int64_t size;
};

template <class Index>
struct Rows {
  std::vector<std::vector<Index>> indices;
  std::vector<std::vector<std::uint64_t>> weights;

  void add(std::vector<Index> columns, std::vector<std::uint64_t> of_columns) {
    indices.push_back(std::move(columns));
    weights.push_back(std::move(of_columns));
  }
  std::vector<Row<Index>> views() const {
    std::vector<Row<Index>> rows;
    for (std::size_t r = 0; r < indices.size(); ++r)
      rows.push_back({indices[r].data(), weights[r].data(), std::ssize(indices[r])});
    return rows;
  }
  std::int64_t entries() const {
    std::int64_t count = 0;
    for (const auto& row : indices) count += std::ssize(row);
    return count;
  }
};

using SumsByColumn = std::vector<std::pair<std::int64_t, std::uint64_t>>;

template <class Index>
SumsByColumn brute_force(const Rows<Index>& rows) {
  std::map<std::int64_t, std::uint64_t> sums;
  for (std::size_t r = 0; r < rows.indices.size(); ++r)
    for (std::size_t k = 0; k < rows.indices[r].size(); ++k) sums[rows.indices[r][k]] += rows.weights[r][k];
  std::erase_if(sums, [](const auto& entry) { return entry.second == 0; });
  return {sums.begin(), sums.end()};
}

template <class Index>
SumsByColumn listed(const SparseSum<Index>& sum) {
  SumsByColumn list;
  EXPECT_EQ(sum.columns.size(), sum.sums.size());
  for (std::size_t k = 0; k < sum.columns.size(); ++k) list.emplace_back(sum.columns[k], sum.sums[k]);
  return list;
}

// By either way and by the one that sum_rows chooses, which starts from a used result.
template <class Index>
void expect_sum(const Rows<Index>& rows, std::int64_t columns, const SumsByColumn& expected) {
  const auto views = rows.views();
  const std::span<const Row<Index>> span(views);
  const auto weight = [](const Row<Index>& row, std::int64_t k) { return row.weights[k]; };
  SparseSum<Index> tiled, sorted, chosen;
  detail::sum_in_tiles<false>(span, {0, columns}, columns, weight, {}, tiled);
  EXPECT_EQ(listed(tiled), expected);
  detail::sum_by_sorting(span, rows.entries(), weight, {}, sorted);
  EXPECT_EQ(listed(sorted), expected);
  chosen.add(7, 7);
  for (const int threads : {1, 3}) {
    sum_rows(Cpu{threads}, span, columns, weight, chosen);
    EXPECT_EQ(listed(chosen), expected);
  }
  // The sum of some rows, then of the others with it.
  for (const auto some : {span.size() / 3, span.size()}) {
    SparseSum<Index> first, earlier_tiled, earlier_sorted;
    sum_rows(Cpu{1}, span.first(some), columns, weight, first);
    detail::sum_in_tiles<false>(span.subspan(some), {0, columns}, columns, weight, first, earlier_tiled);
    EXPECT_EQ(listed(earlier_tiled), expected);
    detail::sum_by_sorting(span.subspan(some), rows.entries(), weight, first, earlier_sorted);
    EXPECT_EQ(listed(earlier_sorted), expected);
  }
}

template <class Index>
class SumRows : public testing::Test {};
using Widths = testing::Types<std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(SumRows, Widths);

TYPED_TEST(SumRows, OfNothingIsEmpty) {
  Rows<TypeParam> rows;
  for (const std::int64_t columns : {std::int64_t{0}, std::int64_t{1}, kTile, 3 * kTile})
    expect_sum(rows, columns, {});
  rows.add({}, {});
  rows.add({}, {});
  for (const std::int64_t columns : {std::int64_t{0}, std::int64_t{1}, kTile, 3 * kTile})
    expect_sum(rows, columns, {});
}

TYPED_TEST(SumRows, UsesAllSixtyFourBits) {
  Rows<TypeParam> rows;
  for (int k = 0; k < 3; ++k) rows.add({1, 2}, {std::uint64_t{1} << 62, (std::uint64_t{1} << 32) - 1});
  expect_sum(rows, 4, {{1, std::uint64_t{3} << 62}, {2, 3 * ((std::uint64_t{1} << 32) - 1)}});
}

// Each column of [0, columns) with probability `per_mille`/1000; a weight is 0 once in four.
template <class Index>
Rows<Index> random_rows(std::int64_t count, std::int64_t columns, std::uint64_t per_mille,
                        std::uint64_t seed) {
  Rows<Index> rows;
  for (std::int64_t r = 0; r < count; ++r) {
    const RandomStream stream = {.seed = seed, .row = static_cast<std::uint64_t>(r)};
    std::vector<Index> indices;
    std::vector<std::uint64_t> weights;
    for (std::int64_t column = 0; column < columns; ++column) {
      const auto word = random64(stream, static_cast<std::uint64_t>(column));
      if (word % 1000 >= per_mille) continue;
      indices.push_back(static_cast<Index>(column));
      weights.push_back((word >> 62) == 0 ? 0 : (word >> 20) & 0xffffff);
    }
    rows.add(std::move(indices), std::move(weights));
  }
  return rows;
}

// Rows that walk whole tiles, at 2 in a thousand, and such that walk subtiles.
TYPED_TEST(SumRows, EqualsAMapOnRandomRows) {
  const auto seed = test_seed(21);
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (const std::int64_t columns : {std::int64_t{1}, std::int64_t{33}, std::int64_t{1000}, kTile - 1, kTile,
                                     kTile + 1, 2 * kTile, 2 * kTile + 77})
    for (const std::int64_t count : {1, 2, 9})
      for (const std::uint64_t per_mille : {2u, 10u, 300u}) {
        if (count == 9 && per_mille == 300 && columns > kTile + 1) continue;
        SCOPED_TRACE("columns " + std::to_string(columns) + " rows " + std::to_string(count));
        const auto rows = random_rows<TypeParam>(count, columns, per_mille, seed);
        expect_sum(rows, columns, brute_force(rows));
      }
}

// Two weights beside each other, one as wide as Index allows: few entries over many columns
// are sorted.
TYPED_TEST(SumRows, OfFewEntriesAcrossTheWholeIdSpace) {
  const auto last = std::numeric_limits<TypeParam>::max();
  Rows<TypeParam> rows;
  rows.add({0, 5, static_cast<TypeParam>(last - 1)}, {1, 1, 1});
  rows.add({5, static_cast<TypeParam>(last - 1)}, {1, 0});
  const auto views = rows.views();
  SparseSum<TypeParam> sum;
  sum_rows(
      Cpu{1}, std::span<const Row<TypeParam>>(views), static_cast<std::int64_t>(last),
      [](const Row<TypeParam>& row, std::int64_t k) { return row.weights[k]; }, sum);
  EXPECT_EQ(listed(sum), (SumsByColumn{{0, 1}, {5, 2}, {static_cast<std::int64_t>(last) - 1, 1}}));
}

}  // namespace
}  // namespace espalier
