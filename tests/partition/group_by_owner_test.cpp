// ranks: 1
// Laws: group_by_owner_cases.hpp, on the CPU.
#include "partition/group_by_owner_cases.hpp"

namespace espalier {
namespace {

constexpr Cpu kCpu = {1};

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

TEST(GroupByOwner, OfHoldersIsEachOfThem) {
  check_groups_by_holder<std::int32_t>(kCpu);
  check_groups_by_holder<std::int64_t>(kCpu);
}

TEST(GroupByOwner, IdsBecomePlaces) {
  check_places<std::int32_t>(kCpu);
  check_places<std::int64_t>(kCpu);
}

}  // namespace
}  // namespace espalier
