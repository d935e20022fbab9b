// Laws of pruning: each needed row is computed or cached, once, and no input row goes unused; the
// rows that stay are whole; what is left gives the seeds what recursion gives them; without hits
// nothing changes, and nothing but hits leaves the last block.
#include <gtest/gtest.h>

#include "history/prune_cases.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

TEST(Prune, RowsAndBlocksAreThoseOfSets) {
  const auto seed = test_seed(18);
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (const auto& shape : prune_shapes())
    for (int repeat = 0; repeat < 3; ++repeat) {
      SCOPED_TRACE(name_of(shape));
      const PruneCase of(shape, random);
      const auto pruned = expect_prunes(Cpu{1}, of);
      const PruneInput<Cpu> input({}, of);
      expect_same(to_host(Cpu{3}, prune(Cpu{3}, input.minibatch, input.hits)), pruned);
    }
}

TEST(Prune, WithoutHitsNothingChanges) {
  std::mt19937_64 random(test_seed(3));
  for (auto shape : prune_shapes()) {
    SCOPED_TRACE(name_of(shape));
    shape.hit_share = 0;
    const PruneCase of(shape, random);
    const PruneInput<Cpu> input({}, of);
    const std::vector<std::span<const std::uint8_t>> empty(of.layers() - 1);
    for (const auto hits : {HistoryHits(input.hits), HistoryHits(empty), HistoryHits()}) {
      const auto pruned = prune(Cpu{1}, input.minibatch, hits);
      EXPECT_EQ(pruned.number, input.minibatch.number);
      EXPECT_TRUE(std::ranges::equal(pruned.inputs(), input.minibatch.vertices));
      for (std::size_t l = 0; l < of.layers(); ++l) {
        EXPECT_TRUE(pruned.layers[l].in_order);
        EXPECT_TRUE(same_block(copy_of(pruned.blocks[l]), copy_of(input.minibatch.blocks[l])));
        EXPECT_TRUE(same_runs(pruned.blocks[l].runs, input.minibatch.blocks[l].runs));
      }
      EXPECT_EQ(pruned.after.inputs, pruned.before.inputs);
      EXPECT_EQ(pruned.after.rows, pruned.before.rows);
      EXPECT_EQ(pruned.after.entries, pruned.before.entries);
    }
  }
}

TEST(Prune, NothingButHitsLeavesTheBlockOfTheSeeds) {
  std::mt19937_64 random(test_seed(4));
  const PruneCase of({.frontiers = {300, 120, 30, 7}, .picks = 12, .hit_share = 1}, random);
  const PruneInput<Cpu> input({}, of);
  const std::vector<std::span<const std::uint8_t>> last = {{}, input.hits[1]};
  const auto pruned = prune(Cpu{1}, input.minibatch, last);
  EXPECT_EQ(pruned.inputs().size(), 0u);
  EXPECT_EQ(pruned.blocks[0].columns + pruned.blocks[0].rows + pruned.blocks[1].rows, 0);
  EXPECT_EQ(pruned.layers[2].cached.size(), pruned.blocks[2].columns);
  EXPECT_EQ(copy_of(pruned.blocks[2]).values, of.blocks[2].values);
  EXPECT_EQ(pruned.after.rows, pruned.seeds());
  EXPECT_TRUE(pruned.blocks[0].has_values()) << "of a block without entries as of others";
}

}  // namespace
}  // namespace espalier
