// ranks: 1 2 4 8
// Laws: what one rank of a group writes all of it read, and no rank of another; what cannot be had
// is refused on every rank; the ranks of a machine are one node.
#include "espalier/comm/node_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "mpi_test.hpp"

namespace espalier {
namespace {

void expect_common(const Communicator& ranks, int mark) {
  constexpr std::int64_t kPiece = 5000;  // more than a page, and not a multiple of one
  const auto memory = NodeMemory::make(ranks, kPiece * ranks.size());
  ASSERT_NE(memory, nullptr);
  ASSERT_EQ(memory->size(), kPiece * ranks.size());
  EXPECT_TRUE(std::all_of(memory->data(), memory->data() + memory->size(),
                          [](std::byte byte) { return byte == std::byte{0}; }));
  ranks.barrier();
  std::fill_n(memory->data() + kPiece * ranks.rank(), kPiece, static_cast<std::byte>(mark + ranks.rank()));
  ranks.barrier();
  for (std::int64_t k = 0; k < memory->size(); ++k)
    ASSERT_EQ(memory->data()[k], static_cast<std::byte>(mark + k / kPiece));
  ranks.barrier();
}

TEST(NodeMemory, IsCommonToItsRanks) {
  const auto& world = test_world();
  expect_common(world, 1);
  for (int groups = 2; groups <= world.size(); groups *= 2) {
    const int group = world.rank() % groups;
    expect_common(world.split(group, world.rank()), 10 * group + 1);
  }
}

TEST(NodeMemory, IsRefusedOnEveryRankWhereItCannotBeHad) {
  EXPECT_EQ(NodeMemory::make(test_world(), std::int64_t{1} << 62), nullptr);
  expect_common(test_world(), 3);
}

TEST(NodeMemory, RanksOfThisMachineAreOneNode) {
  const auto node = ranks_of_node(test_world());
  EXPECT_EQ(node.size(), test_world().size());
  EXPECT_EQ(node.rank(), test_world().rank());
}

}  // namespace
}  // namespace espalier
