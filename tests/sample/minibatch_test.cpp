// Laws of one minibatch: frontiers are sets with destinations a prefix of sources; picks are
// distinct neighbours, all of them where the fanout allows, and are those of draw_uniform with the
// row's stream; block values are what the design says; neither its digest nor threads know where in
// common arrays the blocks lie, or how batches are shared out. That blocks estimate the full row
// without bias stands in plan/model_matrix_test.
#include <gtest/gtest.h>

#include <numeric>

#include "dense/random_matrices.hpp"
#include "espalier/sample/draw.hpp"
#include "espalier/sample/draw_few.hpp"
#include "espalier/sample/sampler.hpp"
#include "mpi_test.hpp"
#include "sample/graphsage_cases.hpp"
#include "sample/sampling_laws.hpp"

namespace espalier {
namespace {

Minibatch sample_neighbours(const DistCsr<std::int32_t>& a, const SamplerShape& shape,
                            const std::vector<std::int64_t>& seeds, std::uint64_t epoch) {
  const auto sampler = make_sampler("graphsage", a, shape);
  const SeedBatch batch = {5, seeds};
  return std::move(sampler->sample({1}, {&batch, 1}, 3, epoch)[0]);
}

TEST(GraphSage, FrontiersAreSetsAndPicksAreNeighbours) {
  const Grid grid(test_world(), 1);
  for (const auto& c : cases()) {
    const auto a = matrix_of<std::int32_t>(grid, c, Topology::kReplicated);
    const std::vector<std::int64_t> seeds = {1, 0, 2, 77, 150, 33};
    const auto minibatch = sample_neighbours(a, c.shape, seeds, 1);
    const bool is_mean = c.shape.aggregation == Aggregation::kMean;
    check_layers(minibatch, c.shape.fanout, seeds, [&](const SampledLayer& layer) {
      for (std::int64_t r = 0; r < layer.block.rows; ++r) {
        const auto v = layer.frontier[static_cast<std::size_t>(r)];
        const auto neighbours = a.local.row_indices(v);
        const auto weights = a.local.row_values(v);
        std::int64_t support = 0;
        for (std::size_t k = 0; k < neighbours.size(); ++k)
          support += (!c.shape.weighted || weights[k] > 0) && (is_mean || neighbours[k] != v);
        const auto row = row_of(minibatch, layer.block, r);
        EXPECT_EQ(std::ssize(row), !is_mean + (layer.fanout < 0 ? support : std::min(layer.fanout, support)));
        double sum = 0;
        for (const auto& [u, value] : row) {
          EXPECT_TRUE(std::ranges::binary_search(neighbours, static_cast<std::int32_t>(u)));
          if (is_mean && !c.shape.weighted)
            EXPECT_EQ(value, static_cast<float>(1.0 / static_cast<double>(row.size())));
          sum += value;
        }
        if (is_mean && !row.empty()) EXPECT_NEAR(sum, 1, 1e-6);
      }
    });
  }
}

// Up to kFewDraws - 1 picks are drawn in a register, with the diagonal beside them kFewDraws; more
// go another way. The picks of either way are those of draw_uniform.
TEST(GraphSage, WideRowsTakeTheDrawsOfTheirStreamOnBothSidesOfAFew) {
  const Grid grid(test_world(), 1);
  for (const auto aggregation : {Aggregation::kMean, Aggregation::kMatrix})
    for (const std::int64_t fanout :
         {2, kFewDraws - 2, kFewDraws - 1, kFewDraws, kFewDraws + 1, kFewDraws + 2}) {
      SCOPED_TRACE(fanout);
      const Case c = {{.fanout = {fanout}, .aggregation = aggregation}, true};
      const auto a = matrix_of<std::int32_t>(grid, c, Topology::kReplicated);
      const std::int64_t diagonal = aggregation == Aggregation::kMatrix;
      const auto size = a.local.row_size(0);  // row 0 holds every column
      std::vector<std::int64_t> expected(static_cast<std::size_t>(fanout + diagonal), 0);
      for (std::uint64_t epoch = 0; epoch < 5; ++epoch) {
        const auto minibatch = sample_neighbours(a, c.shape, {0}, epoch);
        const auto block = copy_of(minibatch.blocks[0]);
        expected[0] = 0;  // where the diagonal lies
        draw_uniform(
            RandomStream{.seed = 3, .purpose = Purpose::kSample, .epoch = epoch, .batch = 5, .layer = 1},
            size, fanout, diagonal, expected.data());
        ASSERT_EQ(block.entries(), fanout + diagonal);
        for (std::size_t k = 0; k < expected.size(); ++k) {
          const auto position = static_cast<std::size_t>(expected[k]);
          const auto u = minibatch.vertices[static_cast<std::size_t>(block.indices[k])];
          EXPECT_EQ(u, a.local.indices[position]);
          const double full = diagonal > 0 ? a.local.values[position] : 1.0 / static_cast<double>(fanout);
          const double scale =
              diagonal == 0 || u == 0 ? 1.0 : static_cast<double>(size - 1) / static_cast<double>(fanout);
          EXPECT_FLOAT_EQ(block.values[k], static_cast<float>(full * scale)) << "entry " << u;
        }
      }
    }
}

TEST(Minibatch, PlacesInCommonArraysDoNotChangeTheDigest) {
  const Grid grid(test_world(), 1);
  const auto a = matrix_of<std::int32_t>(grid, cases()[0], Topology::kReplicated);
  const auto minibatch = sample_neighbours(a, {.fanout = {4, 3}}, {1, 0, 2, 77}, 1);
  auto shared = minibatch;
  std::vector<SharedBlock> arrays;
  for (const auto& block : minibatch.blocks)
    arrays.emplace_back(copy_of(block), 100 * std::ssize(arrays) + 5);
  for (std::size_t l = 0; l < arrays.size(); ++l) shared.blocks[l] = arrays[l].block;
  EXPECT_EQ(sample_digest(shared), sample_digest(minibatch));
  EXPECT_EQ(shared.sampled_edges(), minibatch.sampled_edges());
  EXPECT_NE(sample_digest(minibatch), 0u);
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

TEST(GraphSage, RefusesWeightedDrawsWithoutWeights) {
  const Grid grid(test_world(), 1);
  const auto a = distribute(grid, random_graph<std::int32_t>(20, 3, false, 1), Topology::kPartitioned);
  EXPECT_THROW(make_sampler("graphsage", a, {.fanout = {2}, .weighted = true}), UserError);
}

}  // namespace
}  // namespace espalier
