// ranks: 1 2 3 4 6
// long ranks: 8
// Laws of GraphSAGE: a minibatch is a function of (seed, epoch, batch) only - not of p, c,
// topology, bulk, threads or the width of indices.
#include <gtest/gtest.h>

#include <numeric>

#include "espalier/sample/epoch_sampler.hpp"
#include "mpi_test.hpp"
#include "sample/graphsage_cases.hpp"

namespace espalier {
namespace {

template <class Index>
SampleCounts sample_epoch(const Grid& grid, const Case& c, Topology topology, std::int64_t bulk, int threads,
                          std::uint64_t epoch = 1) {
  const auto a = matrix_of<Index>(grid, c, topology);
  const auto sampler = make_sampler("graphsage", a, c.shape);
  const EpochPlan plan(training_vertices(), 10, grid.ranks(), grid.ranks(), 7, epoch);
  EpochSampler epoch_sampler(grid, *sampler, plan, bulk);
  epoch_sampler.sample_until({threads}, plan.batches());
  return sum_over_ranks(epoch_sampler.counts(), grid.world());
}

TEST(GraphSage, OneDigestForEveryGridTopologyBulkThreadsAndIndexWidth) {
  for (const auto& c : cases()) {
    const Grid flat(test_world(), 1);
    const auto expected = sample_epoch<std::int32_t>(flat, c, Topology::kReplicated, 1000, 1);
    EXPECT_GT(expected.sampled_edges, 0);
    EXPECT_EQ(expected.batches, 8);
    for (const int copies : divisors(test_world().size())) {
      const Grid grid(test_world(), copies);
      for (const auto topology : {Topology::kPartitioned, Topology::kReplicated})
        for (const std::int64_t bulk : {1, 3, 1000}) {
          const auto counts =
              sample_epoch<std::int32_t>(grid, c, topology, bulk, 1 + static_cast<int>(bulk % 2));
          EXPECT_EQ(counts.digest, expected.digest) << "c " << copies << " bulk " << bulk;
          EXPECT_EQ(counts.sampled_edges, expected.sampled_edges);
          EXPECT_EQ(counts.input_rows, expected.input_rows);
        }
      EXPECT_EQ(sample_epoch<std::int64_t>(grid, c, Topology::kPartitioned, 3, 1).digest, expected.digest);
    }
    EXPECT_NE(sample_epoch<std::int32_t>(flat, c, Topology::kReplicated, 1000, 1, 2).digest, expected.digest)
        << "another epoch";
  }
}

// The digest is a number of the design's kind only if it does not change between releases: the
// value for a fixed case.
TEST(GraphSage, TheSameDigestAtEveryNumberOfRanks) {
  const Grid grid(test_world(), 1);
  const auto counts = sample_epoch<std::int32_t>(grid, cases()[0], Topology::kPartitioned, 3, 1);
  EXPECT_EQ(counts.digest, 0x46540bfa4a103dc1u) << std::hex << counts.digest;
}

// Threads share one batch when there are no others; this one is wide enough to be cut into pieces.
TEST(GraphSage, ThreadsThatShareABatchDrawTheSame) {
  const Grid grid(test_world(), 1);
  const auto a = distribute(grid, random_graph<std::int32_t>(4000, 150, false, 5), Topology::kReplicated);
  std::vector<std::int64_t> seeds;
  for (std::int64_t v = 0; v < 4000; v += 2) seeds.push_back(v);
  const SeedBatch batch = {3, seeds};
  for (const auto& kind : {"graphsage", "labor"}) {
    const auto sampler = make_sampler(kind, a, {.fanout = {100, 14, 3}});
    std::vector<std::uint64_t> digests;
    for (const int threads : {1, 2, 3})
      digests.push_back(sample_digest(sampler->sample({threads}, {&batch, 1}, 7, 1)[0]));
    EXPECT_EQ(digests[0], digests[1]) << kind;
    EXPECT_EQ(digests[0], digests[2]) << kind;
  }
}

// Threads take whole batches when there are enough of them, each with its own scratch.
TEST(GraphSage, ThreadsThatTakeABatchEachDrawTheSame) {
  const Grid grid(test_world(), 1);
  const auto a = distribute(grid, random_graph<std::int32_t>(4000, 10, false, 5), Topology::kReplicated);
  std::vector<std::int64_t> seeds(300);
  std::iota(seeds.begin(), seeds.end(), std::int64_t{0});
  std::vector<SeedBatch> batches;
  for (std::int64_t number = 0; number < 12; ++number) batches.push_back({number, seeds});
  const auto sampler = make_sampler("graphsage", a, {.fanout = {5, 5}});
  const auto one = sampler->sample({1}, batches, 7, 1);
  for (const int threads : {2, 3}) {
    const auto many = sampler->sample({threads}, batches, 7, 1);
    for (std::size_t b = 0; b < batches.size(); ++b)
      EXPECT_EQ(sample_digest(many[b]), sample_digest(one[b])) << threads << " threads, batch " << b;
  }
}

TEST(GraphSage, RefusesWeightedDrawsWithoutWeights) {
  const Grid grid(test_world(), 1);
  const auto a = distribute(grid, random_graph<std::int32_t>(20, 3, false, 1), Topology::kPartitioned);
  EXPECT_THROW(make_sampler("graphsage", a, {.fanout = {2}, .weighted = true}), UserError);
}

}  // namespace
}  // namespace espalier
