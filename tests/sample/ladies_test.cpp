// ranks: 1
// Laws of LADIES: figure 1 of Tripathy et al. 2024; draws follow the exact law of drawing without
// replacement; a block holds all entries between its frontier and the picks, valued by the mode;
// mode debiased estimates M H without bias (through layers: unbiased_test.cpp); small, empty and
// isolated supports. Statistical limits: sampling_laws.hpp.
#include "../../src/sample/ladies.inl.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "espalier/product/product.hpp"
#include "mpi_test.hpp"
#include "sample/sampling_laws.hpp"

namespace espalier {
namespace {

// The weights of the columns of the frontier's rows, from their definition.
Weights weights_of_frontier(const SparseMatrix& m, std::span<const std::int64_t> frontier, SamplerMode mode) {
  Weights weights;
  for (const auto v : frontier)
    for (const auto& [u, value] : row_of(m, v))
      weights[u] += mode == SamplerMode::kPaper ? value != 0 : static_cast<double>(value) * value;
  if (mode == SamplerMode::kPaper)
    for (auto& [u, weight] : weights) weight *= weight;
  std::erase_if(weights, [](const auto& item) { return item.second == 0; });
  return weights;
}

// ---- Figure 1: batch {1, 5} of six vertices -----------------------------------------------------

const Ids kBatch = {1, 5};

SparseMatrix figure_one(const Grid& grid) {
  return normalize_rows(matrix_of(grid, {{1, 3}, {0, 2, 4}, {1, 5}, {4}, {0, 1, 5}, {3, 4}}), false, false);
}

TEST(LadiesFigureOne, TheProbabilitiesAreThoseOfThePaper) {
  const Grid grid(test_world(), 1);
  const auto m = figure_one(grid);
  const auto frontier = stack_frontier(Cpu{1}, std::vector<Ids>{kBatch}, {0});
  const auto product = open_product(Cpu{1}, frontier, m, Schedule::kPull, "test");
  int visits = 0;
  product->sum({1}, EntryWeight{}, [&](std::int64_t batch, const SparseSum<std::int32_t>& sum) {
    ++visits;
    EXPECT_EQ(batch, 0);
    EXPECT_TRUE(std::ranges::equal(sum.columns, Ids{0, 2, 3, 4}));
    EXPECT_TRUE(std::ranges::equal(sum.sums, Ids{1, 1, 1, 2})) << "edges to each column";
    const auto prefix = ladies_prefix(sum, SamplerMode::kPaper);
    EXPECT_EQ(prefix, (std::vector<std::uint64_t>{0, 1, 2, 3, 7})) << "[1,0,1,1,4,0]/7";
    EXPECT_EQ(ladies_prefix(sum, SamplerMode::kDebiased), (std::vector<std::uint64_t>{0, 1, 2, 3, 5}));
  });
  EXPECT_EQ(visits, 1);
}

TEST(LadiesPrefix, SquaresAndAddsInSixtyFourBits) {
  SparseSum<std::int32_t> sum;
  sum.add(0, 3);
  sum.add(9, std::uint64_t{1} << 31);
  EXPECT_EQ(ladies_prefix(sum, SamplerMode::kPaper).back(), (std::uint64_t{1} << 62) + 9);
  EXPECT_EQ(ladies_prefix(SparseSum<std::int32_t>{}, SamplerMode::kPaper), std::vector<std::uint64_t>{0});
}

// ---- The law of the draws -----------------------------------------------------------------------

// Three seeds whose rows meet five or six columns with unequal values; seeds are not among
// the columns.
SparseMatrix small_support(const Grid& grid) {
  return matrix_of(grid, {{3, 4, 5, 6}, {4, 5, 7}, {5, 6, 7, 8}, {}, {}, {}, {}, {}, {}},
                   {0.5f, 1.0f, -0.25f, 0.75f, 0.3f, 1.5f, 0.2f, 0.9f, 0.1f, 0.6f, 2.0f});
}

// Every outcome of two and of three draws, the order of draws told by the factors, as often as the
// enumeration says; and that enumeration has mean factor 1, so the estimate is unbiased exactly.
TEST(LadiesDraws, OrderedDrawsAndTheirFactorsFollowTheEnumeratedLaw) {
  const Grid grid(test_world(), 1);
  const auto m = small_support(grid);
  const auto seed = test_seed(2);
  SCOPED_TRACE(seed);
  for (const auto& seeds : {Ids{0, 1, 2}, Ids{2, 0}})
    for (const std::size_t s : {2, 3}) {
      const auto weights = weights_of_frontier(m, seeds, SamplerMode::kDebiased);
      ASSERT_EQ(weights.size(), 6u);
      expect_enumerated_law("ladies", m, weights, seeds, s, seed);
    }
}

// Subsets in every mode. In mode reference the seeds are columns too (M has a diagonal) and join
// every subset.
TEST(LadiesDraws, SubsetsFollowTheLawOfEveryMode) {
  const Grid grid(test_world(), 1);
  const auto seed = test_seed(3);
  SCOPED_TRACE(seed);
  const Ids seeds = {0, 1};
  const auto plain = matrix_of(grid, {{2, 3, 4}, {3, 4, 5}, {}, {}, {}, {}}, {1, 2, 3, 1, 1, 5});
  for (const auto mode : kModes) {
    const auto m = normalize_rows(plain, mode == SamplerMode::kReference, true);
    const auto weights = weights_of_frontier(m, seeds, mode);
    for (const std::size_t s : {2, 3}) {
      std::map<Ids, double> law;
      for (const auto& outcome : law_of(weights, s)) {
        std::set<std::int64_t> vertices(seeds.begin(), seeds.end());
        for (const auto& [u, factor] : outcome.factors) vertices.insert(u);
        law[{vertices.begin(), vertices.end()}] += outcome.probability;
      }
      const auto sampler =
          make_sampler("ladies", m, {.fanout = {static_cast<std::int64_t>(s)}, .mode = mode});
      std::map<Ids, std::int64_t> seen;
      sample_batches(*sampler, seeds, 30000, seed, [&](const Minibatch& minibatch) {
        ++seen[{minibatch.vertices.begin(), minibatch.vertices.end()}];
      });
      expect_law(law, seen);
    }
  }
}

// ---- Frontiers, extraction and values -----------------------------------------------------------

// New sources show by an entry too: all picks are neighbours of the frontier.
void check_sources(const SampledLayer& layer) {
  const auto block = copy_of(layer.block);
  const std::set<std::int64_t> columns(block.indices.begin(), block.indices.end());
  for (auto k = std::ssize(layer.frontier); k < std::ssize(layer.sources); ++k)
    EXPECT_TRUE(columns.contains(k)) << "a source outside of the aggregated neighbourhood";
}

void check_number_of_picks(const SampledLayer& layer, const Weights& weights, const Ids& seeds,
                           SamplerMode mode) {
  const auto& picks = layer.picks;
  const auto support = std::ssize(weights),
             drawn = layer.fanout < 0 ? support : std::min(layer.fanout, support);
  for (const auto u : picks) EXPECT_TRUE(weights.contains(u)) << "column " << u << " has no weight";
  if (mode != SamplerMode::kReference) {
    EXPECT_EQ(std::ssize(picks), drawn);
    return;
  }
  EXPECT_GE(std::ssize(picks), drawn);
  EXPECT_LE(std::ssize(picks), drawn + std::ssize(seeds));
  for (const auto seed : seeds) EXPECT_TRUE(picks.contains(seed)) << "seed " << seed << " was left out";
}

void check_values(const SparseMatrix& m, const Minibatch& minibatch, const SampledLayer& layer,
                  const Weights& weights, SamplerMode mode) {
  const auto total = total_of(weights);
  const bool whole = layer.fanout < 0 || std::ssize(weights) <= layer.fanout;
  std::map<std::int64_t, std::pair<double, double>> ratios;  // smallest and largest of a column
  for (std::int64_t r = 0; r < std::ssize(layer.frontier); ++r) {
    const auto full = row_of(m, layer.frontier[static_cast<std::size_t>(r)]);
    const auto row = row_of(minibatch, layer.block, r);
    double sum = 0, row_sum = 0;
    for (const auto& [u, value] : row) sum += full.at(u) * total / weights.at(u);
    for (const auto& [u, value] : row) {
      row_sum += value;
      const double a = full.at(u);
      if (mode == SamplerMode::kPaper || (mode == SamplerMode::kDebiased && whole))
        EXPECT_EQ(value, full.at(u));
      else if (mode == SamplerMode::kReference)
        EXPECT_NEAR(value, sum > 0 ? a * total / weights.at(u) / sum : 0, 1e-6);
      else if (a != 0) {
        const auto [known, fresh] = ratios.emplace(u, std::pair(value / a, value / a));
        known->second = {std::min(known->second.first, value / a), std::max(known->second.second, value / a)};
      } else
        EXPECT_EQ(value, 0);
    }
    if (mode == SamplerMode::kReference && sum > 0) EXPECT_NEAR(row_sum, 1, 1e-6);
  }
  for (const auto& [u, ratio] : ratios) {
    EXPECT_NEAR(ratio.second / ratio.first, 1, 1e-6) << "one factor per column";
    EXPECT_GE(ratio.first * static_cast<double>(layer.fanout), 1 - 1e-6) << "the least that Des Raj's can be";
  }
}

void check_ladies_minibatch(const SparseMatrix& m, const SamplerShape& shape, const Ids& seeds) {
  const auto minibatch = sample_one("ladies", m, shape, seeds);
  check_layers(minibatch, shape.fanout, seeds, [&](const SampledLayer& layer) {
    const auto weights = weights_of_frontier(m, layer.frontier, shape.mode);
    check_extraction(m, minibatch, layer);
    check_sources(layer);
    check_number_of_picks(layer, weights, seeds, shape.mode);
    check_values(m, minibatch, layer, weights, shape.mode);
  });
}

// Row 0 holds every column, row 1 is isolated, row 2 has itself only; frontiers above and below
// the fanout.
TEST(LadiesBlocks, HoldAllEntriesBetweenFrontierAndPicks) {
  const Grid grid(test_world(), 1);
  const std::vector<Ids> batches = {{1, 0, 2, 33, 17}, {40, 2, 1, 9}, {1}, {2}, {2, 1}, {51}};
  const std::vector<Ids> fanouts = {{5},     {1},         {100},        {-1},         {6, 3},
                                    {-1, 4}, {4, 100, 5}, {3, 8, 2, 6}, {2, 2, 2, -1}};
  for (const bool weighted : {false, true}) {
    const auto a = random_matrix(grid, 60, 4, weighted);
    for (const auto mode : kModes) {
      std::vector<SparseMatrix> matrices = {normalize_rows(a, true, weighted)};
      if (mode != SamplerMode::kReference)
        matrices = {normalize_rows(a, false, weighted), normalize_with_self_loops(a)};
      for (const auto& m : matrices)
        for (const auto& fanout : fanouts)
          for (const auto& seeds : batches)
            check_ladies_minibatch(m, {.fanout = fanout, .mode = mode}, seeds);
    }
  }
}

TEST(LadiesBlocks, AFrontierWithoutNeighboursYieldsOnlyItself) {
  const Grid grid(test_world(), 1);
  const auto m = normalize_rows(matrix_of(grid, {{3, 4}, {}, {}, {4}, {}}), false, false);
  for (const auto mode : kModes) {
    const auto minibatch = sample_one("ladies", m, {.fanout = {3, 3}, .mode = mode}, {2, 1});
    EXPECT_TRUE(std::ranges::equal(minibatch.vertices, Ids{2, 1}));
    for (const auto& block : minibatch.blocks) {
      EXPECT_EQ(block.entries(), 0);
      EXPECT_EQ(block.rows, 2);
      EXPECT_EQ(block.columns, 2);
    }
  }
}

// A column that only entries of value 0 reach has no weight in modes that square values; it counts
// in mode paper.
TEST(LadiesBlocks, ColumnsOfWeightZeroAreNeverPicked) {
  const Grid grid(test_world(), 1);
  const auto m = matrix_of(grid, {{1, 2, 3}, {}, {}, {}}, {0.0f, 0.5f, 0.25f});
  for (const auto fanout : {1, 2, 3, -1}) {
    const auto sampler = make_sampler("ladies", m, {.fanout = {fanout}});
    sample_batches(*sampler, {0}, 200, 1, [&](const Minibatch& minibatch) {
      EXPECT_EQ(std::ranges::count(minibatch.vertices, 1), 0);
      EXPECT_EQ(std::ssize(minibatch.vertices), fanout == 1 ? 2 : 3);
    });
  }
  EXPECT_EQ(sample_one("ladies", m, {.fanout = {3}, .mode = SamplerMode::kPaper}, {0}).vertices.size(), 3u);
  const auto nothing = matrix_of(grid, {{1, 2}, {}, {}}, {0.0f, 0.0f});
  for (const auto mode : kModes)
    EXPECT_EQ(sample_one("ladies", nothing, {.fanout = {1}, .mode = mode}, {0}).vertices.size(), 1u);
}

}  // namespace
}  // namespace espalier
