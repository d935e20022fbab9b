// ranks: 1 2 4
// Laws: splits are the divisors of the cores that have enough ranks; their parts are disjoint, all
// of the cores, and in one NUMA node where that can be; the fastest is the one with most steps, of
// equals the one with fewer ranks; a list is read as it was written and nothing else is. What a
// split measures is measured by its ranks, on its cores, and leaves all as they were.
#include "espalier/plan/core_splits.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "mpi_test.hpp"
#include "user_error.hpp"

namespace espalier {
namespace {

std::vector<std::int64_t> ranks_of(const std::vector<CoreSplit>& splits) {
  std::vector<std::int64_t> ranks;
  for (const auto& split : splits) ranks.push_back(split.ranks);
  return ranks;
}

TEST(CoreSplits, AreTheDivisorsOfTheCores) {
  EXPECT_EQ(ranks_of(core_splits(1, 1)), std::vector<std::int64_t>{1});
  EXPECT_EQ(ranks_of(core_splits(2, 2)), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(ranks_of(core_splits(2, 64)), (std::vector<std::int64_t>{1, 2})) << "more ranks than cores";
  EXPECT_EQ(ranks_of(core_splits(72, 12)), (std::vector<std::int64_t>{1, 2, 3, 4, 6, 8, 9, 12}));
  EXPECT_EQ(ranks_of(core_splits(128, 128)), (std::vector<std::int64_t>{1, 2, 4, 8, 16, 32, 64, 128}));
  EXPECT_EQ(ranks_of(core_splits(13, 13)), (std::vector<std::int64_t>{1, 13}));
  for (const auto& split : core_splits(96, 96)) EXPECT_EQ(split.ranks * split.threads, 96);
}

// Two sockets of 36 cores with two hardware threads each, numbered as Linux does.
TEST(CoreSplits, ShareTheCoresOfANode) {
  constexpr int kCores = 72;
  CoreList all(2 * kCores), siblings(2 * kCores);
  std::iota(all.begin(), all.end(), 0);
  for (int core = 0; core < 2 * kCores; ++core) siblings[static_cast<std::size_t>(core)] = core % kCores;
  std::vector<NumaNode> nodes(2);
  for (const int core : all) nodes[static_cast<std::size_t>(core % kCores / 36)].cores.push_back(core);
  nodes[1].number = 1;
  const auto near = near_each_other(all, nodes, siblings);
  for (const auto& split : core_splits(2 * kCores, 2 * kCores)) {
    CoreList taken;
    for (std::int64_t place = 0; place < split.ranks; ++place) {
      const auto part = cores_of(split, near, place);
      EXPECT_EQ(std::ssize(part), split.threads);
      if (split.ranks % 2 == 0)
        EXPECT_EQ(std::ssize(nodes_of(part, nodes)), 1) << split.ranks << " " << place;
      if (split.threads % 2 == 0)
        for (const int core : part)
          EXPECT_TRUE(std::ranges::binary_search(part, (core + kCores) % (2 * kCores))) << "a core in two";
      taken.insert(taken.end(), part.begin(), part.end());
    }
    std::ranges::sort(taken);
    EXPECT_EQ(taken, all);
  }
}

TEST(CoreSplits, TheFastestHasTheMostSteps) {
  EXPECT_EQ(fastest_of({}), nullptr);
  EXPECT_EQ(fastest_of({{1, 8, 0}, {2, 4, 0}}), nullptr) << "nothing was measured";
  const std::vector<CoreSplit> splits = {{1, 8, 4}, {2, 4, 6}, {4, 2, 6}, {8, 1, 0}};
  EXPECT_EQ(fastest_of(splits), &splits[1]);
  EXPECT_EQ(core_split_table(splits),
            "ranks x threads      steps/s of a node      of the fastest\n"
            "1 x 8                                4                0.67\n"
            "2 x 4                                6                1.00  fastest\n"
            "4 x 2                                6                1.00\n"
            "8 x 1                                -                   -");
}

TEST(CoreSplits, AreReadAsTheyWereWritten) {
  const std::vector<CoreSplit> splits = {{1, 72, 4.25}, {2, 36, 6}, {8, 9, 0}, {72, 1, 1234}};
  const auto words = core_splits_in_words(splits);
  EXPECT_EQ(words, "1x72 4.25, 2x36 6, 72x1 1.23e+03");
  const auto read = parse_core_splits(words, "file");
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(ranks_of(read), (std::vector<std::int64_t>{1, 2, 72}));
  EXPECT_EQ(core_splits_in_words(read), words);
  EXPECT_TRUE(parse_core_splits("", "file").empty());
  for (const char* wrong : {"1x2", "1x2 ", "1x2 3,", "1x2 3,2x1 4", "x2 3", "0x2 3", "1x0 3", "1x2 0",
                            "1x2 -3", "1x2 inf", "1x2 nan", "1 x 2 3", "1x2 3 4", "99999999999999999999x1 2"})
    expect_refused(ExitCode::kUsage, {"file: ", "1x8 4.25"}, [&] { parse_core_splits(wrong, "file"); });
}

TEST(CoreSplits, APlanIsToldOfTheFastest) {
  const std::vector<CoreSplit> splits = {{1, 8, 4}, {2, 4, 6}, {4, 2, 5}};
  EXPECT_EQ(advice_on_split(splits, 2, 4), "");
  EXPECT_EQ(advice_on_split({}, 2, 4), "");
  EXPECT_EQ(advice_on_split(splits, 1, 8),
            "1 x 8; fastest by the machine file: 2 ranks a node x 4 threads, 1.50 times as many steps");
  EXPECT_EQ(advice_on_split(splits, 2, 2),
            "2 x 2 was not measured by the machine file; fastest of what was: 2 ranks a node x 4 threads");
}

TEST(CoreSplits, RunOnTheirCoresAndLeaveThem) {
  const auto& world = test_world();
  const auto node = place_on_node(world);
  const auto before = allowed_cores();
  const auto near = cores_of_node(world);
  EXPECT_EQ(near.size(), before.size()) << "all ranks of this machine have the same";
  for (const auto& split : core_splits(std::ssize(near), world.size())) {
    const SplitRanks ranks(world, node, split, near);
    ASSERT_TRUE(ranks.moved());
    EXPECT_EQ(ranks.takes_part(), world.rank() < split.ranks);
    EXPECT_EQ(ranks.group().size(), ranks.takes_part() ? split.ranks : world.size() - split.ranks);
    if (ranks.takes_part()) EXPECT_EQ(allowed_cores(), cores_of(split, near, node.place));
    ranks.wait();
  }
  EXPECT_EQ(allowed_cores(), before);
}

}  // namespace
}  // namespace espalier
