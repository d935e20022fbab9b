// ranks: 1
// Laws: group_by_owner_cases.hpp, on a GPU.
#include "cuda_test.hpp"
#include "partition/group_by_owner_cases.hpp"

namespace espalier {
namespace {

class GroupByOwnerCuda : public CudaTest {};

TEST_F(GroupByOwnerCuda, OfRandomListsEqualsASearchPartByPart) {
  check_random_groups<std::int32_t, std::int32_t>(gpu());
  check_random_groups<std::int64_t, std::int32_t>(gpu());
  check_random_groups<std::int64_t, std::int64_t>(gpu());
  check_random_groups<std::uint64_t, std::uint64_t>(gpu());
}

TEST_F(GroupByOwnerCuda, OfTheLargestIds) {
  check_groups_of_large_ids(gpu());
}

TEST_F(GroupByOwnerCuda, OfAnOwnershipEqualsASearchPartByPart) {
  check_groups_by_ownership<std::int32_t>(gpu());
  check_groups_by_ownership<std::int64_t>(gpu());
}

TEST_F(GroupByOwnerCuda, OfHoldersIsEachOfThem) {
  check_groups_by_holder<std::int32_t>(gpu());
  check_groups_by_holder<std::int64_t>(gpu());
}

TEST_F(GroupByOwnerCuda, IdsBecomePlaces) {
  check_places<std::int32_t>(gpu());
  check_places<std::int64_t>(gpu());
}

}  // namespace
}  // namespace espalier
