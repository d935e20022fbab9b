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
