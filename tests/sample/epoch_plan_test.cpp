// ranks: 1
// Laws: every training vertex is in one batch of an epoch, and every batch is on one rank; batches
// do not depend on ranks or steps; label_indices go with their vertices. With groups: a batch is of
// one group; batches of a group are as even as can be; a step has groups that are spread evenly,
// all of them equally often where it has as many batches; ranks keep equal stretches of a step, and
// with as many parts as ranks each what lies in its part.
#include "espalier/sample/epoch_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "espalier/base/philox.hpp"
#include "espalier/partition/order.hpp"
#include "mpi_test.hpp"
#include "sample/batch_lists.hpp"
#include "sample/graphsage_cases.hpp"

namespace espalier {
namespace {

// A batch, or its examples, may be all that keeps the lists: they are not to be had of a temporary.
template <class Batch>
concept ShowsLists = requires(Batch&& batch) {
  std::forward<Batch>(batch).seeds();
}
|| requires(Batch&& batch) {
  std::forward<Batch>(batch).label_indices();
}
|| requires(Batch&& batch) {
  std::forward<Batch>(batch).excluded_edges();
}
|| requires(Batch&& batch) {
  std::forward<Batch>(batch).links();
};
template <class Plan>
concept ShowsBatches = requires(Plan&& plan) {
  std::forward<Plan>(plan).batch(0);
}
|| requires(Plan&& plan) {
  std::forward<Plan>(plan).examples();
};
static_assert(ShowsLists<const SeedBatch&> && !ShowsLists<SeedBatch> && !ShowsLists<const SeedBatch>);
static_assert(ShowsBatches<const EpochPlan&> && !ShowsBatches<EpochPlan>);

TEST(EpochPlan, EveryVertexOnceAndEveryBatchOnOneRank) {
  const auto training = training_vertices();
  const EpochPlan plan(training, 10, 3, 2, 1, 1);
  EXPECT_EQ(plan.batches(), 8);
  EXPECT_EQ(plan.steps(), 3);
  EXPECT_EQ(plan.step_end(2), 8) << "the last step is short";
  EXPECT_EQ(seeds_of(plan, 7).size(), 9u) << "the last batch is short";
  std::multiset<std::int64_t> seen;
  for (std::int64_t b = 0; b < plan.batches(); ++b) {
    for (const auto v : seeds_of(plan, b)) seen.insert(v);
    EXPECT_LT(plan.rank_of(b), 2);
  }
  EXPECT_TRUE(std::equal(seen.begin(), seen.end(), training.begin(), training.end()));
  const EpochPlan again(training, 10, 5, 8, 1, 1), other(training, 10, 3, 2, 1, 2);
  EXPECT_TRUE(std::ranges::equal(seeds_of(plan, 0), seeds_of(again, 0)))
      << "batches do not depend on ranks or steps";
  EXPECT_FALSE(std::ranges::equal(seeds_of(plan, 0), seeds_of(other, 0)));
}

TEST(EpochPlan, TagsGoWithTheirVertices) {
  const auto training = training_vertices();
  std::vector<std::int32_t> label_indices;
  for (const auto vertex : training) label_indices.push_back(static_cast<std::int32_t>(1000 - vertex));
  const EpochPlan plan(training, 10, 3, 2, 1, 1, label_indices), without(training, 10, 3, 2, 1, 1);
  for (std::int64_t b = 0; b < plan.batches(); ++b) {
    const auto seeds = seeds_of(plan, b);
    EXPECT_TRUE(std::ranges::equal(seeds, seeds_of(without, b))) << "label_indices change no batch";
    ASSERT_EQ(tags_of(plan, b).size(), seeds.size());
    for (std::size_t k = 0; k < seeds.size(); ++k) EXPECT_EQ(tags_of(plan, b)[k], 1000 - seeds[k]);
  }
}

// Groups of very different sizes, one of them empty.
BatchGroups uneven_groups(std::int64_t vertices, std::int32_t count) {
  BatchGroups groups;
  groups.count = count;
  for (std::int64_t k = 0; k < vertices; ++k) {
    const auto u = random64({.seed = 4, .row = static_cast<std::uint64_t>(k)}, 0) >> 32;
    const auto group = static_cast<std::int32_t>((u * u >> 32) * static_cast<std::uint64_t>(count) >> 32);
    groups.of.push_back(group == 2 ? 0 : group);
  }
  return groups;
}

BatchGroups even_groups(std::int64_t vertices, std::int32_t count) {
  BatchGroups groups;
  groups.count = count;
  for (std::int64_t k = 0; k < vertices; ++k) groups.of.push_back(static_cast<std::int32_t>(k % count));
  return groups;
}

std::vector<std::int64_t> vertices_of(std::int64_t count) {
  std::vector<std::int64_t> training;
  for (std::int64_t k = 0; k < count; ++k) training.push_back(3 * k + 1);
  return training;
}

// Training vertex 3 k + 1 is number k.
std::int32_t group_of_batch(const EpochPlan& plan, const BatchGroups& groups, std::int64_t batch) {
  return groups.of[seeds_of(plan, batch).front() / 3];
}

TEST(LocalBatches, EveryVertexOnceInABatchOfItsGroup) {
  const auto training = vertices_of(1000);
  std::vector<std::int32_t> label_indices;
  for (const auto vertex : training) label_indices.push_back(static_cast<std::int32_t>(5000 - vertex));
  const auto groups = uneven_groups(1000, 7);
  const EpochPlan plan(training, 16, 5, 3, 1, 1, label_indices, &groups);
  std::multiset<std::int64_t> seen;
  std::map<std::int32_t, std::set<std::size_t>> sizes;
  std::map<std::int32_t, std::int64_t> batches, members;
  for (const auto group : groups.of) ++members[group];
  for (std::int64_t b = 0; b < plan.batches(); ++b) {
    const auto seeds = seeds_of(plan, b);
    const auto group = group_of_batch(plan, groups, b);
    for (std::size_t k = 0; k < seeds.size(); ++k) {
      EXPECT_EQ(groups.of[seeds[k] / 3], group);
      EXPECT_EQ(tags_of(plan, b)[k], 5000 - seeds[k]);
    }
    seen.insert(seeds.begin(), seeds.end());
    sizes[group].insert(seeds.size());
    ++batches[group];
  }
  EXPECT_TRUE(std::equal(seen.begin(), seen.end(), training.begin(), training.end()));
  for (const auto& [group, of_group] : sizes) {
    EXPECT_LE(*of_group.rbegin(), 16u);
    EXPECT_LE(*of_group.rbegin() - *of_group.begin(), 1u) << "batches of a group are even";
    EXPECT_EQ(batches[group], count_batches(members[group], 16));
  }
}

TEST(LocalBatches, DependOnSeedAndEpochAlone) {
  const auto training = vertices_of(500);
  const auto groups = uneven_groups(500, 7);
  const EpochPlan plan(training, 16, 5, 3, 1, 1, {}, &groups);
  for (const int ranks : {1, 2, 8})
    for (const std::int64_t step : {1, 4, 1000}) {
      const EpochPlan again(training, 16, step, ranks, 1, 1, {}, &groups);
      ASSERT_EQ(again.batches(), plan.batches());
      for (std::int64_t b = 0; b < plan.batches(); ++b)
        EXPECT_TRUE(std::ranges::equal(seeds_of(plan, b), seeds_of(again, b)));
    }
  for (const auto& other :
       {EpochPlan(training, 16, 5, 3, 1, 2, {}, &groups), EpochPlan(training, 16, 5, 3, 2, 1, {}, &groups)}) {
    std::int64_t equal = 0;
    for (std::int64_t b = 0; b < plan.batches(); ++b)
      equal += std::ranges::equal(seeds_of(plan, b), seeds_of(other, b));
    EXPECT_EQ(equal, 0);
  }
}

// Of 16 even groups, 2^k batches of a step are of groups 16 / 2^k apart.
TEST(LocalBatches, AStepIsStratified) {
  const auto training = vertices_of(16 * 40);
  const auto groups = even_groups(16 * 40, 16);
  for (const std::int64_t step : {2, 4, 8, 16, 32}) {
    const EpochPlan plan(training, 10, step, 4, 1, 1, {}, &groups);
    ASSERT_EQ(plan.batches(), 64);
    for (std::int64_t s = 0; s < plan.steps(); ++s) {
      std::map<std::int64_t, std::int64_t> of_stratum;
      for (auto b = plan.step_begin(s); b < plan.step_end(s); ++b)
        ++of_stratum[group_of_batch(plan, groups, b) * std::min<std::int64_t>(step, 16) / 16];
      EXPECT_EQ(std::ssize(of_stratum), std::min<std::int64_t>(step, 16));
      for (const auto& [stratum, count] : of_stratum) EXPECT_EQ(count, std::max<std::int64_t>(step / 16, 1));
    }
  }
}

TEST(LocalBatches, RanksKeepEqualStretchesOfAStep) {
  const auto training = vertices_of(1000);
  const auto uneven = uneven_groups(1000, 7);
  for (const int ranks : {1, 2, 3, 8})
    for (const std::int64_t step : {1, 3, 8, 50}) {
      const EpochPlan plan(training, 16, step, ranks, 1, 1, {}, &uneven);
      for (std::int64_t s = 0; s < plan.steps(); ++s) {
        std::vector<std::int64_t> kept(ranks, 0);
        std::vector<std::pair<std::int32_t, int>> group_and_rank;
        for (auto b = plan.step_begin(s); b < plan.step_end(s); ++b) {
          ++kept[plan.rank_of(b)];
          group_and_rank.emplace_back(group_of_batch(plan, uneven, b), plan.rank_of(b));
        }
        const auto [least, most] = std::ranges::minmax(kept);
        EXPECT_LE(most - least, 1);
        std::ranges::sort(group_and_rank);
        EXPECT_TRUE(std::ranges::is_sorted(group_and_rank, {}, &std::pair<std::int32_t, int>::second));
      }
    }
}

TEST(LocalBatches, OfAStratifiedStepEachRankKeepsItsPart) {
  const auto training = vertices_of(16 * 40);
  const auto groups = even_groups(16 * 40, 16);
  for (const int ranks : {1, 2, 4, 8, 16}) {
    const EpochPlan plan(training, 10, 16, ranks, 1, 1, {}, &groups);
    for (std::int64_t b = 0; b < plan.batches(); ++b)
      EXPECT_EQ(plan.rank_of(b), group_of_batch(plan, groups, b) * ranks / 16);
  }
}

// Each vertex of a group is equally often in each of its batches: 3 / 4 of the sum over 4 x
// 4 counts of permutations is chi-square with 9 degrees of freedom, passed with probability
// 1 - 10^-6.
TEST(LocalBatches, DrawABatchUniformly) {
  constexpr int kEpochs = 4000;
  const auto training = vertices_of(8);
  const auto groups = even_groups(8, 2);
  // Vertex of group 0, its place in the epoch's order.
  std::array<std::array<double, 4>, 4> counts{};
  for (int epoch = 1; epoch <= kEpochs; ++epoch) {
    const EpochPlan plan(training, 1, 1, 1, test_seed(8), static_cast<std::uint64_t>(epoch), {}, &groups);
    int place = 0;
    for (std::int64_t b = 0; b < plan.batches(); ++b)
      if (group_of_batch(plan, groups, b) == 0) ++counts[seeds_of(plan, b).front() / 6][place++];
  }
  double chi_square = 0;
  for (const auto& of_vertex : counts)
    for (const auto count : of_vertex)
      chi_square += (count - kEpochs / 4.0) * (count - kEpochs / 4.0) / (kEpochs / 4.0);
  EXPECT_LT(0.75 * chi_square, 45.1);
}

// ---- A partition of all vertices ----------------------------------------------------------------

TEST(VertexPartition, EveryVertexOnceInEvenBatchesThatAscend) {
  const std::vector<std::int64_t> learnt = {0, 7, 40, 99, 156};
  const std::vector<std::int32_t> label_indices = {5, 4, 0, 2, 9};
  const EpochPlan plan({learnt, label_indices},
                       {.batch_size = 20, .batches_per_step = 3, .ranks = 2, .population = 157});
  EXPECT_EQ(plan.batches(), 8);
  EXPECT_EQ(plan.examples().population(), 157);
  std::multiset<std::int64_t> seen;
  std::map<std::int64_t, std::int32_t> tagged;
  for (std::int64_t b = 0; b < plan.batches(); ++b) {
    const auto batch = plan.batch(b);
    EXPECT_EQ(batch.number, b);
    EXPECT_EQ(plan.examples().count_seeds(b, b + 1), std::ssize(batch.seeds()));
    EXPECT_TRUE(batch.seeds().size() == 19 || batch.seeds().size() == 20) << batch.seeds().size();
    EXPECT_TRUE(std::ranges::is_sorted(batch.seeds()));
    seen.insert(batch.seeds().begin(), batch.seeds().end());
    ASSERT_EQ(batch.label_indices().size(), batch.seeds().size());
    for (std::size_t k = 0; k < batch.seeds().size(); ++k)
      if (batch.label_indices()[k] >= 0) tagged[batch.seeds()[k]] = batch.label_indices()[k];
  }
  EXPECT_EQ(plan.examples().count_seeds(0, plan.batches()), 157);
  ASSERT_EQ(seen.size(), 157u);
  EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), 157u);
  EXPECT_EQ(*seen.rbegin(), 156);
  EXPECT_EQ(tagged, (std::map<std::int64_t, std::int32_t>{{0, 5}, {7, 4}, {40, 0}, {99, 2}, {156, 9}}));
}

TEST(VertexPartition, BatchesDependOnSeedAndEpochAlone) {
  const auto seeds_with = [](const EpochShape& shape) {
    return seeds_of(EpochPlan(TrainingVertices{}, shape), 1);
  };
  const EpochShape shape = {
      .batch_size = 20, .batches_per_step = 3, .ranks = 2, .seed = 1, .epoch = 1, .population = 157};
  auto elsewhere = shape, epoch = shape, seed = shape;
  elsewhere.ranks = 5;
  elsewhere.batches_per_step = 1;
  epoch.epoch = 2;
  seed.seed = 2;
  EXPECT_EQ(seeds_with(shape), seeds_with(elsewhere));
  EXPECT_NE(seeds_with(shape), seeds_with(epoch));
  EXPECT_NE(seeds_with(shape), seeds_with(seed));
}

// Two of 11 vertices are in one of the batches of 3, 4 and 4 with probability (6 + 12 + 12) / 110.
TEST(VertexPartition, AnyTwoVerticesMeetEquallyOften) {
  constexpr std::int64_t kVertices = 11, kEpochs = 20000;
  const auto random = test_seed(6);
  SCOPED_TRACE(random);
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> met;
  for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const EpochPlan plan(TrainingVertices{},
                         {.batch_size = 4, .seed = random, .epoch = epoch, .population = kVertices});
    ASSERT_EQ(plan.batches(), 3);
    for (std::int64_t b = 0; b < 3; ++b) {
      const auto batch = plan.batch(b);
      for (std::size_t i = 0; i < batch.seeds().size(); ++i)
        for (std::size_t k = 0; k < i; ++k) ++met[{batch.seeds()[k], batch.seeds()[i]}];
    }
  }
  ASSERT_EQ(met.size(), 55u);
  const double p = 30.0 / 110, deviation = std::sqrt(kEpochs * p * (1 - p));
  for (const auto& [pair, times] : met)
    EXPECT_NEAR(static_cast<double>(times), kEpochs * p, 6 * deviation)
        << pair.first << " and " << pair.second;
}

// ---- Groups of an order -------------------------------------------------------------------------

// Vertex v is in cluster v % 12; those below 60 train. Clusters 0 to 5 have many edges.
Order twelve_clusters() {
  Order order;
  order.info.nodes = 120;
  for (int cluster = 0; cluster < 12; ++cluster)
    order.info.weights.push_back({10, cluster < 6 ? 100 : 1, 5, 0, 0});
  for (int v = 0; v < 120; ++v) order.cluster.push_back(static_cast<std::uint16_t>(v % 12));
  return order;
}

TEST(BatchGroups, AreStretchesOfTheClustersWithEvenTraining) {
  const auto order = twelve_clusters();
  std::vector<std::int64_t> training;
  for (int v = 0; v < 60; ++v) training.push_back(v);
  for (const std::int32_t count : {1, 2, 3, 4, 6, 12}) {
    const auto groups = group_batches(order, training, count);
    EXPECT_EQ(groups.count, count);
    ASSERT_EQ(groups.of.size(), training.size());
    for (std::size_t k = 0; k < training.size(); ++k)
      EXPECT_EQ(groups.of[k], order.cluster[training[k]] * count / 12) << "of vertex " << training[k];
    for (std::int32_t group = 0; group < count; ++group)
      EXPECT_EQ(std::ranges::count(groups.of, group), 60 / count);
  }
}

}  // namespace
}  // namespace espalier
