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

// Row 0 hits at layer 1; seed 1 reads it, and it stays needed at layer 0 by another way.
TEST(Prune, ATinyCaseByHand) {
  PruneShape shape = {.frontiers = {5, 3, 2}, .picks = 0};
  std::mt19937_64 random(1);
  shape.frontiers = {2, 2, 2};
  PruneCase of(shape, random);
  of.shape.frontiers = {5, 3, 2};
  of.vertices = {10, 11, 12, 13, 14};
  of.blocks[0].rows = 3, of.blocks[0].columns = 5;
  of.blocks[0].indptr = {0, 1, 3, 5};
  of.blocks[0].indices = {3, 0, 4, 1, 2};
  of.blocks[0].values = {1, 2, 3, 4, 5};
  of.blocks[1].rows = 2, of.blocks[1].columns = 3;
  of.blocks[1].indptr = {0, 1, 2};
  of.blocks[1].indices = {2, 0};
  of.blocks[1].values = {6, 7};
  of.hits = {{1, 0, 0}};
  const auto pruned = expect_prunes(Cpu{1}, of);
  // H[1]: 11 and 12 are computed, 10 is read.
  EXPECT_EQ(pruned.layers[1].place, (Buffer<std::int64_t>{~0, 0, 1}));
  EXPECT_EQ(pruned.layers[1].computed.vertices, (Buffer<std::int64_t>{11, 12}));
  EXPECT_EQ(pruned.layers[1].cached.vertices, (Buffer<std::int64_t>{10}));
  EXPECT_EQ(pruned.layers[1].cached.columns, (Buffer<std::int64_t>{0}));
  // Inputs: 11, 12, then 10 and 14 as 11 reads them; 13 leaves.
  EXPECT_EQ(pruned.layers[0].computed.vertices, (Buffer<std::int64_t>{11, 12, 10, 14}));
  EXPECT_EQ(pruned.layers[0].computed.positions, (Buffer<std::int64_t>{1, 2, 0, 4}));
  EXPECT_EQ(pruned.blocks[0].indptr, (Buffer<std::int64_t>{0, 2, 4}));
  EXPECT_EQ(pruned.blocks[0].indices, (Buffer<std::int32_t>{2, 3, 0, 1}));
  EXPECT_EQ(pruned.blocks[0].values, (Buffer<float>{2, 3, 4, 5}));
  EXPECT_EQ(pruned.blocks[1].indices, (Buffer<std::int32_t>{2, 0}));
  EXPECT_EQ(pruned.before.inputs, 5);
  EXPECT_EQ(pruned.before.rows, 5);
  EXPECT_EQ(pruned.before.entries, 7);
  EXPECT_EQ(pruned.after.inputs, 4);
  EXPECT_EQ(pruned.after.rows, 4);
  EXPECT_EQ(pruned.after.entries, 6);
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
