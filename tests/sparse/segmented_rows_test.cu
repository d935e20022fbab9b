// The laws of rows in segments on a GPU, for every number of segments that memory lets it work on
// at once; a budget makes groups of that many.
// ranks: 1
#include "cuda_test.hpp"
#include "sparse/segmented_rows_laws.hpp"

namespace espalier {
namespace {

class DeviceSegmentedRows : public CudaTest {
 protected:
  template <class Work>
  void for_every_budget(Work work) const {
    for (const std::int64_t at_once : {0, 1, 2, 5}) work(Way<Cuda>{gpu(), at_once});
  }
};

TEST_F(DeviceSegmentedRows, SumsEqualAMaps) {
  for_every_budget(expect_sums_of_awkward_lists<std::int32_t, Cuda>);
  for_every_budget(expect_sums_of_awkward_lists<std::int64_t, Cuda>);
}

TEST_F(DeviceSegmentedRows, MergedSumsEqualAMaps) {
  for_every_budget(expect_merged_sums<std::int32_t, Cuda>);
  for_every_budget(expect_merged_sums<std::int64_t, Cuda>);
}

TEST_F(DeviceSegmentedRows, SelectionsEqualALoop) {
  for_every_budget(expect_selections<std::int32_t, Cuda>);
  for_every_budget(expect_selections<std::int64_t, Cuda>);
}

TEST_F(DeviceSegmentedRows, OfNoSegmentsNothingComes) {
  for_every_budget(expect_nothing_of_nothing<std::int32_t, Cuda>);
  for_every_budget(expect_nothing_of_nothing<std::int64_t, Cuda>);
}

TEST_F(DeviceSegmentedRows, SumsAndSelectionsOfTheSameRows) {
  for_every_budget(expect_both_of_the_same_rows<std::int32_t, Cuda>);
  for_every_budget(expect_both_of_the_same_rows<std::int64_t, Cuda>);
}

// Groups in order, as many at once as fit the budget, one at least.
TEST_F(DeviceSegmentedRows, ABudgetBoundsWhatIsSummedAtOnce) {
  using Groups = std::vector<std::pair<std::int64_t, std::int64_t>>;  // first segment, segments
  const auto matrix = random_graph<std::int32_t>(1025, 9, true, 3);
  const auto rows = cut(gpu(), matrix, awkward_lists(1025));
  const auto one = dense_sum_bytes(1025);
  const auto groups_of = [&](std::int64_t budget) {
    Groups summed, merged;
    const auto keep = [](Groups& groups) {
      return [&groups](std::int64_t first, Sums<std::int32_t, Cuda>& sums) {
        groups.emplace_back(first, sums.lists());
      };
    };
    sum_segments<std::int32_t>(gpu(), rows.segments, {}, keep(summed), budget);
    const SharedList<std::int64_t, Cuda> itself(gpu(), {0, 1, 2, 3, 4, 5, 6, 7, 8});
    merge_sums<std::int32_t>(gpu(), stack_sums(gpu(), rows.segments, {}), itself, 9, 1025, keep(merged),
                             budget);
    EXPECT_EQ(summed, merged);
    return summed;
  };
  EXPECT_EQ(groups_of(0), (Groups{{0, 9}}));
  EXPECT_EQ(groups_of(9 * one), (Groups{{0, 9}}));
  EXPECT_EQ(groups_of(6 * one - 1), (Groups{{0, 5}, {5, 4}}));
  EXPECT_EQ(groups_of(4 * one), (Groups{{0, 4}, {4, 4}, {8, 1}}));
  EXPECT_EQ(groups_of(1).size(), 9u);
}

}  // namespace
}  // namespace espalier
