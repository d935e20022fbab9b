// The laws of rows in segments on the CPU, for every number of threads.
#include "sparse/segmented_rows_laws.hpp"

namespace espalier {
namespace {

template <class Index>
class SegmentedRowsTest : public testing::Test {
 protected:
  template <class Work>
  void for_every_number_of_threads(Work work) {
    for (const int threads : {1, 2, 3}) {
      SCOPED_TRACE(fmt::format("{} threads", threads));
      const Cpu cpu = {threads};
      work(Way<Cpu>{cpu});
    }
  }
};
using Widths = testing::Types<std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(SegmentedRowsTest, Widths);

TYPED_TEST(SegmentedRowsTest, SumsEqualAMaps) {
  this->for_every_number_of_threads(expect_sums_of_awkward_lists<TypeParam, Cpu>);
}

// A third of each list's rows first, then the others with what these sum up to; of rows with equal
// entries, said and not said; of lists together and each by itself, which threads share.
template <class Index>
void expect_sums_of_known_parts(const Way<Cpu>& way) {
  for (const std::int64_t n : {33, 2500, 70000})
    for (const bool equal : {false, true}) {
      SCOPED_TRACE(fmt::format("n {} equal {}", n, equal));
      auto matrix = random_graph<Index>(n, 9, true, 3);
      for (std::int64_t row = 0; equal && row < n; ++row)
        for (auto k = matrix.row_begin(row); k < matrix.row_end(row); ++k)
          matrix.values[k] = static_cast<float>(row % 5) / 8;
      const auto lists = awkward_lists(std::min<std::int64_t>(n, 300));
      RowLists firsts;
      EarlierSums<Index> earlier;
      for (std::int64_t list = 0; list < lists.count(); ++list) {
        auto rows = lists.list(list);
        rows.resize(rows.size() / 3);
        earlier.rows.push_back(std::ssize(rows));
        firsts.add(rows);
      }
      earlier.sums.resize(lists.count());
      for (auto weight : kWeights) {
        const auto expected = sums_by_loop(matrix, lists, weight);
        weight.equal_in_rows = equal;
        sum_segments<Index>(way.space, cut(way.space, matrix, firsts).segments, weight,
                            [&](std::int64_t list, SparseSum<Index>& sum) { earlier.sums[list] = sum; });
        VisitedSums visited(lists.count());
        sum_segments(way.space, cut(way.space, matrix, lists).segments, weight,
                     visited.template visitor<Index>(way.space), &earlier);
        EXPECT_TRUE(visited.is_each_once());
        EXPECT_TRUE(visited.sums == expected);
      }
      RowLists alone;
      alone.add(lists.list(7));
      expect_sums(way, matrix, alone);
    }
}

TYPED_TEST(SegmentedRowsTest, SumsAreThoseOfTheirParts) {
  this->for_every_number_of_threads(expect_sums_of_known_parts<TypeParam>);
}

TYPED_TEST(SegmentedRowsTest, MergedSumsEqualAMaps) {
  this->for_every_number_of_threads(expect_merged_sums<TypeParam, Cpu>);
}

TYPED_TEST(SegmentedRowsTest, SelectionsEqualALoop) {
  this->for_every_number_of_threads(expect_selections<TypeParam, Cpu>);
}

TYPED_TEST(SegmentedRowsTest, OfNoSegmentsNothingComes) {
  this->for_every_number_of_threads(expect_nothing_of_nothing<TypeParam, Cpu>);
}

TYPED_TEST(SegmentedRowsTest, SumsAndSelectionsOfTheSameRows) {
  this->for_every_number_of_threads(expect_both_of_the_same_rows<TypeParam, Cpu>);
}

}  // namespace
}  // namespace espalier
