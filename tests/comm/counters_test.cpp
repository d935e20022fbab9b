// ranks: 1 3
// Laws of named counters: sums over ranks and over runs of an epoch, and what nobody knows stays
// unknown in both.
#include <gtest/gtest.h>

#include "espalier/comm/counters.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

Counters some() {
  return {{{"rows", "read"}, {"rows", "seen"}, {"memory", "bytes", OverRanks::kMost}}};
}

TEST(Counters, AreAddedByName) {
  auto counters = some(), more = some();
  counters.add("rows", "read", 3);
  more.add("rows", "read", 4);
  more.declare({"rows", "new", OverRanks::kSum, 9});
  counters.add(more);
  EXPECT_EQ(counters.find("rows", "read"), 7);
  EXPECT_EQ(counters.find("rows", "seen"), 0);
  EXPECT_EQ(counters.find("rows", "new"), 9);
  EXPECT_EQ(counters.find("rows", "none"), std::nullopt);
  EXPECT_TRUE(counters.has("memory"));
  EXPECT_FALSE(counters.has("none"));
  counters.clear();
  EXPECT_EQ(counters.find("rows", "read"), 0);
}

TEST(Counters, WhatIsNotKnownStaysSo) {
  auto counters = some();
  counters.add("rows", "read", 3);
  counters.give_up("rows", "read");
  counters.add("rows", "read", 3);
  EXPECT_EQ(counters.find("rows", "read"), std::nullopt);
  auto sum = some();
  sum.add(counters);
  EXPECT_EQ(sum.find("rows", "read"), std::nullopt);
  EXPECT_EQ(sum.find("rows", "seen"), 0);
}

TEST(Counters, OverRanksAreSumsOrTheMost) {
  const auto& world = test_world();
  auto mine = some();
  mine.add("rows", "read", world.rank() + 1);
  mine.set("memory", "bytes", 10 * world.rank());
  const auto all = over_ranks(mine, world);
  const std::int64_t p = world.size();
  EXPECT_EQ(all.find("rows", "read"), p * (p + 1) / 2);
  EXPECT_EQ(all.find("memory", "bytes"), 10 * (p - 1));
  if (world.rank() == world.size() - 1) mine.give_up("rows", "read");
  EXPECT_EQ(over_ranks(mine, world).find("rows", "read"), std::nullopt) << "one rank does not know";
}

// Two runs of an epoch: sums go on, numbers of a moment do not.
TEST(Counters, GoOnFromACheckpoint) {
  auto first = some(), second = some();
  first.add("rows", "read", 5);
  first.give_up("rows", "seen");
  first.set("memory", "bytes", 100);
  second.add("rows", "read", 2);
  second.set("memory", "bytes", 30);
  second.add_sums(first.sums());
  EXPECT_EQ(second.find("rows", "read"), 7);
  EXPECT_EQ(second.find("rows", "seen"), std::nullopt);
  EXPECT_EQ(second.find("memory", "bytes"), 30);
}

}  // namespace
}  // namespace espalier
