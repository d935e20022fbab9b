// ranks: 1
// Laws: group_by_owner_cases.hpp, on the CPU; and the bounds of a partition.
#include "partition/group_by_owner_cases.hpp"

namespace espalier {
namespace {

constexpr Cpu kCpu = {1};

TEST(GroupByOwner, KeepsTheOrderOfTheListWithinAPart) {
  check_groups_by_hand(kCpu);
}

TEST(GroupByOwner, OfRandomListsEqualsASearchPartByPart) {
  check_random_groups<std::int32_t, std::int32_t>(kCpu);
  check_random_groups<std::int64_t, std::int32_t>(kCpu);
  check_random_groups<std::int64_t, std::int64_t>(kCpu);
  check_random_groups<std::uint64_t, std::uint64_t>(kCpu);
}

TEST(GroupByOwner, OfTheLargestIds) {
  check_groups_of_large_ids(kCpu);
}

TEST(GroupByOwner, OfAnOwnershipEqualsASearchPartByPart) {
  check_groups_by_ownership<std::int32_t>(kCpu);
  check_groups_by_ownership<std::int64_t>(kCpu);
}

TEST(GroupByOwner, IdsBecomePlaces) {
  check_places<std::int32_t>(kCpu);
  check_places<std::int64_t>(kCpu);
}

TEST(GroupByOwner, BoundsAreThoseOfThePartition) {
  const auto bounds = bounds_of(kCpu, block_partition(7, 3));
  ASSERT_EQ(bounds.size(), 4);
  for (int part = 0; part < 3; ++part) {
    EXPECT_EQ(bounds[part], block_partition(7, 3).begin(part));
    EXPECT_EQ(bounds.data()[part + 1], block_partition(7, 3).end(part));
  }
}

}  // namespace
}  // namespace espalier
