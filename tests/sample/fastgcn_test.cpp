// ranks: 1
// Laws of FastGCN: one global distribution, the squared column norms of M (mode reference: the
// norms); draws follow the exact law of drawing without replacement, also where one weight
// dominates and rounds repeat; values are a / (s q_u), or Des Raj's, which are unbiased; blocks
// hold all entries between frontier and picks. Statistical limits: sampling_laws.hpp.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "mpi_test.hpp"
#include "sample/sampling_laws.hpp"

namespace espalier {
namespace {

// Row-normalised or symmetrically normalised with self-loops.
SparseMatrix normalized_matrix(const Grid& grid, std::int64_t n, std::int64_t degree, bool weighted,
                               bool symmetric) {
  const auto a = random_matrix(grid, n, degree, weighted, 6);
  return symmetric ? normalize_with_self_loops(a) : normalize_rows(a, false, weighted);
}

// The weights of all columns, from their definition; columns of weight zero are left out.
Weights weights_of_columns(const SparseMatrix& m, SamplerMode mode) {
  Weights weights;
  for (std::int64_t v = 0; v < m.rows(); ++v)
    for (const auto& [u, value] : row_of(m, v)) weights[u] += static_cast<double>(value) * value;
  if (mode == SamplerMode::kReference)
    for (auto& [u, weight] : weights) weight = std::sqrt(weight);
  std::erase_if(weights, [](const auto& item) { return item.second == 0; });
  return weights;
}

Ids all_vertices(std::int64_t n) {
  Ids ids(static_cast<std::size_t>(n));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

// ---- The distribution ---------------------------------------------------------------------------

// With all vertices as seeds every pick shows in the block. One pick per batch, on matrices with
// columns that nothing enters.
TEST(FastGcnDistribution, OnePickFollowsTheColumnNorms) {
  const Grid grid(test_world(), 1);
  const auto seed = test_seed(1);
  SCOPED_TRACE(seed);
  const auto vertices = all_vertices(12);
  for (const auto mode : kModes)
    for (const bool symmetric : {false, true}) {
      const auto m = normalized_matrix(grid, 12, 2, true, symmetric);
      const auto weights = weights_of_columns(m, mode);
      const auto sampler = make_sampler("fastgcn", m, {.fanout = {1}, .mode = mode});
      std::map<std::int64_t, std::int64_t> seen;
      sample_batches(*sampler, vertices, 40000, seed, [&](const Minibatch& minibatch) {
        const auto factors = factors_of(m, vertices, minibatch);
        ASSERT_EQ(factors.size(), 1u);
        const auto [u, factor] = *factors.begin();
        ++seen[u];
        EXPECT_NEAR(factor / (total_of(weights) / weights.at(u)), 1, 1e-6) << "one draw: 1 / q in every mode";
      });
      Weights law;
      for (const auto& [u, weight] : weights) law[u] = weight / total_of(weights);
      expect_law(law, seen);
    }
}

TEST(FastGcnDistribution, PaperAndReferenceDivideByPicksTimesProbability) {
  const Grid grid(test_world(), 1);
  const auto vertices = all_vertices(40);
  for (const auto mode : {SamplerMode::kPaper, SamplerMode::kReference})
    for (const bool symmetric : {false, true})
      for (const std::int64_t fanout : {1, 3, 7, 1000, -1}) {
        const auto m = normalized_matrix(grid, 40, 3, true, symmetric);
        const auto weights = weights_of_columns(m, mode);
        const auto sampler = make_sampler("fastgcn", m, {.fanout = {fanout}, .mode = mode});
        const auto support = std::ssize(weights);
        const auto s = static_cast<double>(fanout < 0 ? support : std::min(fanout, support));
        sample_batches(*sampler, vertices, 20, 1, [&](const Minibatch& minibatch) {
          const auto factors = factors_of(m, vertices, minibatch);
          EXPECT_EQ(static_cast<double>(factors.size()), s) << "distinct picks";
          for (const auto& [u, factor] : factors)
            EXPECT_NEAR(factor * s * weights.at(u) / total_of(weights), 1, 1e-6) << "column " << u;
        });
      }
}

// Columns 1 and 4 hold zeros only, 5 nothing.
TEST(FastGcnDistribution, ColumnsOfWeightZeroAreNeverPicked) {
  const Grid grid(test_world(), 1);
  const auto m =
      matrix_of(grid, {{0, 1}, {2, 4}, {1, 3}, {}, {0}, {}}, {0.5f, 0.0f, 1e-3f, 0.0f, 0.0f, 0.25f, 1.0f});
  for (const auto mode : kModes)
    for (const std::int64_t fanout : {1, 2, 3, 4, 6, -1}) {
      const auto sampler = make_sampler("fastgcn", m, {.fanout = {fanout}, .mode = mode});
      sample_batches(*sampler, {3}, 300, 1, [&](const Minibatch& minibatch) {
        for (const auto u : minibatch.vertices) EXPECT_TRUE(u != 1 && u != 4 && u != 5) << u;
        if (fanout < 0 || fanout >= 3) EXPECT_TRUE(std::ranges::equal(minibatch.vertices, Ids{3, 0, 2}));
      });
    }
  const auto nothing = matrix_of(grid, {{1}, {}}, {0.0f});
  for (const auto mode : kModes)
    for (const std::int64_t fanout : {1, -1})
      EXPECT_EQ(sample_one("fastgcn", nothing, {.fanout = {fanout}, .mode = mode}, {0}).vertices.size(), 1u);
}

TEST(FastGcnDistribution, TheWholeSupportIsTakenAsItIs) {
  const Grid grid(test_world(), 1);
  const auto m = normalized_matrix(grid, 30, 3, true, false);
  const auto support = std::ssize(weights_of_columns(m, SamplerMode::kDebiased));
  for (const auto fanout : {support, support + 1, std::int64_t{-1}}) {
    const auto minibatch = sample_one("fastgcn", m, {.fanout = {fanout}}, {4, 0, 1});
    for (std::int64_t r = 0; r < 3; ++r) {
      auto full = row_of(m, Ids{4, 0, 1}[static_cast<std::size_t>(r)]);
      EXPECT_EQ(row_of(minibatch, minibatch.blocks[0], r), full) << "factor 1";
    }
  }
}

// ---- The law of the draws -----------------------------------------------------------------------

// Row 0, the seed's, shows all columns.
void expect_ordered_draws(const SparseMatrix& m, std::size_t s, std::uint64_t seed) {
  expect_enumerated_law("fastgcn", m, weights_of_columns(m, SamplerMode::kDebiased), {0}, s, seed);
}

TEST(FastGcnDraws, OrderedDrawsFollowTheEnumeratedLaw) {
  const Grid grid(test_world(), 1);
  const auto seed = test_seed(2);
  SCOPED_TRACE(seed);
  const auto m = matrix_of(grid, {{0, 2, 3, 5, 8}, {}, {}, {}, {2, 8}, {}, {}, {}, {}},
                           {0.5f, 1.0f, 0.75f, 0.6f, 1.3f, 0.5f, 0.25f});
  for (const std::size_t s : {1, 2, 3, 4}) expect_ordered_draws(m, s, seed);
}

// The first round hits column 6 nearly always, so picks are still missing after it; later rounds
// draw without it.
TEST(FastGcnDraws, TheLawHoldsWhenOneWeightDominates) {
  const Grid grid(test_world(), 1);
  const auto seed = test_seed(3);
  SCOPED_TRACE(seed);
  const auto one =
      matrix_of(grid, {{1, 2, 4, 6, 7}, {}, {}, {}, {}, {}, {}, {}}, {1.0f, 0.5f, 1.5f, 1000.0f, 2.0f});
  for (const std::size_t s : {2, 3, 4}) expect_ordered_draws(one, s, seed);
  const auto two = matrix_of(grid, {{0, 1, 2, 4, 6, 7}, {}, {}, {}, {}, {}, {}, {}},
                             {300.0f, 1.0f, 0.8f, 20.0f, 3000.0f, 0.5f});
  for (const std::size_t s : {3, 4}) expect_ordered_draws(two, s, seed);
}

TEST(FastGcnDraws, DifferBetweenBatchesLayersEpochsAndSeeds) {
  const Grid grid(test_world(), 1);
  const auto m = normalized_matrix(grid, 200, 4, false, true);
  const auto sampler = make_sampler("fastgcn", m, {.fanout = {10, 10}});
  const auto seeds = all_vertices(200);
  const auto sample = [&](std::int64_t batch, std::uint64_t seed, std::uint64_t epoch) {
    const SeedBatch one = {batch, seeds};
    return std::move(sampler->sample({1}, {&one, 1}, seed, epoch)[0]);
  };
  const auto columns = [](const BlockView<>& block) {
    const auto copy = copy_of(block);
    return std::set<std::int32_t>(copy.indices.begin(), copy.indices.end());
  };
  const auto base = sample(1, 1, 1);
  EXPECT_EQ(columns(sample(1, 1, 1).blocks[0]), columns(base.blocks[0]));
  EXPECT_NE(columns(base.blocks[1]), columns(base.blocks[0])) << "layers";
  EXPECT_NE(columns(sample(2, 1, 1).blocks[0]), columns(base.blocks[0])) << "batches";
  EXPECT_NE(columns(sample(1, 2, 1).blocks[0]), columns(base.blocks[0])) << "seeds";
  EXPECT_NE(columns(sample(1, 1, 2).blocks[0]), columns(base.blocks[0])) << "epochs";
}

// ---- Frontiers and extraction -------------------------------------------------------------------

// Not all picks show: one that is in the frontier, and without an entry there, does not.
void check_fastgcn_minibatch(const SparseMatrix& m, const SamplerShape& shape, const Ids& seeds) {
  const auto weights = weights_of_columns(m, shape.mode);
  const auto support = std::ssize(weights);
  const auto minibatch = sample_one("fastgcn", m, shape, seeds);
  check_layers(minibatch, shape.fanout, seeds, [&](const SampledLayer& layer) {
    check_extraction(m, minibatch, layer);
    EXPECT_LE(std::ssize(layer.picks), layer.fanout < 0 ? support : std::min(layer.fanout, support));
    for (const auto u : layer.picks) EXPECT_TRUE(weights.contains(u));
  });
}

TEST(FastGcnBlocks, HoldAllEntriesBetweenFrontierAndPicks) {
  const Grid grid(test_world(), 1);
  for (const bool weighted : {false, true})
    for (const bool symmetric : {false, true}) {
      const auto m = normalized_matrix(grid, 60, 4, weighted, symmetric);
      for (const auto mode : kModes)
        for (const auto& fanout :
             std::vector<Ids>{{5}, {1}, {-1}, {6, 30}, {20, 5, 10}, {3, 8, 2, 6}, {2, 2, -1, 2}})
          for (const auto& seeds : std::vector<Ids>{{1, 0, 2, 33, 17}, {40, 2, 1, 9}, {1}, {2, 1}})
            check_fastgcn_minibatch(m, {.fanout = fanout, .mode = mode}, seeds);
    }
}

}  // namespace
}  // namespace espalier
