// ranks: 1 3 4
// Laws: every held row is counted once, by layer and age; nothing depends on who holds what.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "espalier/history/training_history.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

TEST(HeldRows, AreCountedByLayerAndAge) {
  const auto& world = test_world();
  std::mt19937_64 random(7);
  std::vector<HeldRow> all;
  std::map<std::pair<int, int>, std::int64_t> expected;  // by layer and floor(log2(age))
  for (const int layer : {1, 3})
    for (std::int64_t v = 0; v < 700; ++v) {
      all.push_back({layer, 1 + static_cast<std::int64_t>(random() % 40)});
      ++expected[{layer, static_cast<int>(std::floor(std::log2(all.back().age)))}];
    }
  ASSERT_EQ(expected.size(), 12U) << "ages 1, 2-3, .. 32-63 of two layers";
  // Row k is of rank k mod p, or all are of one.
  for (const bool all_on_last : {false, true}) {
    std::vector<HeldRow> mine;
    for (std::size_t k = 0; k < all.size(); ++k)
      if (world.rank() == (all_on_last ? world.size() - 1 : static_cast<int>(k) % world.size()))
        mine.push_back(all[k]);
    const auto found = count_held(world, mine);
    ASSERT_EQ(found.size(), expected.size());
    auto some = found.begin();
    for (const auto& [of, rows] : expected) {
      EXPECT_EQ(some->layer, of.first);
      EXPECT_EQ(some->youngest, std::int64_t{1} << of.second);
      EXPECT_EQ(some->oldest, (std::int64_t{2} << of.second) - 1);
      EXPECT_EQ((some++)->rows, rows);
    }
  }
}

TEST(HeldRows, NothingHeld) {
  EXPECT_TRUE(count_held(test_world(), {}).empty());
}

}  // namespace
}  // namespace espalier
