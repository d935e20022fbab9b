// ranks: 1 2 3 4 6 8
// Laws of sampling where columns are (relation, source): each relation's part of a row is drawn as
// a row of its own, with the stream and the fanout of the relation; a minibatch is a function of
// (seed, epoch, batch) only; a matrix of one type and one relation gives the minibatches of a
// plain one.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>

#include "espalier/sample/block_value.hpp"
#include "espalier/sample/draw.hpp"
#include "espalier/sample/epoch_sampler.hpp"
#include "mpi_test.hpp"
#include "partition/owned.hpp"
#include "typed_graph.hpp"

namespace espalier {
namespace {

constexpr std::int64_t kNodes = 157;
constexpr std::uint64_t kSeed = 7, kEpoch = 3;

struct Case {
  const char* kind;
  bool weighted_graph;
  SamplerShape shape;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"graphsage", false, {.fanout = {4, 3}}},
      {"graphsage",
       false,
       {.fanout = {4, 3}, .relation_fanout = {{4, 1, 0, 2, -1, 3, 2}, {-1, 2, 2, 2, 3, 1, 1}}}},
      {"graphsage", true, {.fanout = {3, 2}, .weighted = true}},
      {"labor", false, {.fanout = {4, -1}}},
      {"ladies", true, {.fanout = {20, 30}}},
      {"fastgcn", false, {.fanout = {40, 1000}}},
      {"labor",
       false,
       {.fanout = {2, 2}, .relation_fanout = {{4, 1, 0, 2, -1, 3, 2}, {1, 2, 2, 2, 3, 1, 1}}}},
  };
  return all;
}

Buffer<std::int64_t> training_vertices() {
  Buffer<std::int64_t> ids;
  for (std::int64_t v = 0; v < kNodes / 2; v += 2) ids.push_back(v);
  return ids;
}

std::uint64_t digest_of(const Grid& grid, const Case& c, const Ownership& ownership, Schedule schedule,
                        std::int64_t bulk, int threads) {
  const auto schema = typed_schema(kNodes);
  auto a = typed_matrix(grid, schema, typed_graph<std::int32_t>(schema, 12, c.weighted_graph, 11), ownership);
  if (sampler_kind_of(c.kind).layer_wise) a = normalize_rows(std::move(a), false, true);
  auto shape = c.shape;
  shape.schedule = schedule;
  const auto sampler = make_sampler(c.kind, a, shape);
  const EpochPlan plan(training_vertices(), 10, grid.ranks(), grid.ranks(), kSeed, kEpoch);
  EpochSampler epoch_sampler(grid, *sampler, plan, bulk);
  epoch_sampler.sample_until({threads}, plan.batches());
  return sum_over_ranks(epoch_sampler.counts(), grid.world()).digest;
}

TEST(TypedSampler, MakesTheSameMinibatchesOnEveryGridByEverySchedule) {
  for (const auto& c : cases()) {
    const Grid alone(test_world(), test_world().size());
    const auto expected = digest_of(alone, c, block_partition(kNodes, 1), Schedule::kPull, 1000, 1);
    for (const int replication : divisors(test_world().size())) {
      const Grid grid(test_world(), replication);
      for (const auto schedule :
           {Schedule::kPull, Schedule::kPush, Schedule::kStaged, Schedule::kStagedOblivious})
        for (const auto owned : kAllOwned) {
          SCOPED_TRACE(fmt::format("{} c {} {}", c.kind, replication, name_of(schedule)));
          EXPECT_EQ(digest_of(grid, c, ownership_of(owned, kNodes, grid.rows()), schedule, 3, 2), expected);
        }
    }
  }
}

// What the law says of a row's part: its picks, by brute force.
std::set<std::int64_t> drawn(std::span<const std::int32_t> part, std::int64_t fanout, RandomStream stream) {
  const auto size = std::ssize(part);
  std::vector<std::int64_t> places(size);
  for (std::int64_t k = 0; k < size; ++k) places[k] = k;
  if (fanout >= 0 && size > fanout) {
    places.resize(fanout);
    draw_uniform(stream, size, fanout, 0, places.data());
  }
  std::set<std::int64_t> picks;
  for (const auto k : places) picks.insert(part[k]);
  return picks;
}

// The runs of a block cover its columns, in order, and say their types.
void expect_runs(const Schema& schema, const Minibatch& minibatch) {
  for (const auto& block : minibatch.blocks) {
    std::int64_t at = 0;
    for (const auto& run : block.runs) {
      EXPECT_EQ(run.begin, at);
      for (; at < run.end; ++at) ASSERT_EQ(schema.type_of(minibatch.vertices[at]), run.type);
    }
    EXPECT_EQ(at, block.columns);
  }
}

void expect_drawn_by_relation(const Schema& schema, const Csr<std::int32_t>& whole,
                              const Minibatch& minibatch, const SamplerShape& shape) {
  for (std::size_t l = 0; l < minibatch.blocks.size(); ++l) {
    const auto& block = minibatch.blocks[l];
    const auto k = shape.fanout.size() - 1 - l;
    ASSERT_NE(block.relations, nullptr);
    for (std::int64_t row = 0; row < block.rows; ++row) {
      const auto v = minibatch.vertices[row];
      std::map<int, std::set<std::int64_t>> picks;
      int before = 0;
      for (auto e = block.row_begin(row); e < block.row_end(row); ++e) {
        const int relation = block.relations[e];
        ASSERT_GE(relation, before);
        before = relation;
        picks[relation].insert(schema.column(relation, minibatch.vertices[block.indices[e]]));
      }
      for (int r = 0; r < std::ssize(schema.relations()); ++r) {
        const auto columns = whole.row_indices(v);
        const auto first = std::ranges::lower_bound(columns, schema.begin(r)),
                   last = std::ranges::lower_bound(columns, schema.begin(r + 1));
        const auto fanout = shape.relation_fanout.empty() ? shape.fanout[k] : shape.relation_fanout[k][r];
        const RandomStream stream = {kSeed,
                                     Purpose::kSample,
                                     kEpoch,
                                     static_cast<std::uint64_t>(minibatch.number),
                                     (l + 1) | static_cast<std::uint64_t>(r) << 16,
                                     static_cast<std::uint64_t>(v)};
        EXPECT_EQ(picks[r], drawn({first, last}, fanout, stream)) << "vertex " << v << ", relation " << r;
      }
      for (auto e = block.row_begin(row); e < block.row_end(row); ++e)
        EXPECT_EQ(block.values[e], mean_value(std::ssize(picks[block.relations[e]])));
    }
  }
}

TEST(TypedSampler, DrawsEachRelationsPartAsARow) {
  const auto schema = typed_schema(kNodes);
  const auto whole = typed_graph<std::int32_t>(schema, 12, false, 11);
  const Grid grid(test_world(), 1);
  const auto a = typed_matrix(grid, schema, whole, block_partition(kNodes, grid.rows()));
  const std::vector<std::int64_t> seeds = {0, 5, 1, 33, 8, 2};
  for (const auto& c : cases()) {
    if (std::string_view(c.kind) != "graphsage" || c.weighted_graph) continue;
    const SeedBatch batch = {test_world().rank() + 4, seeds};
    const auto minibatches = make_sampler(c.kind, a, c.shape)->sample({1}, {&batch, 1}, kSeed, kEpoch);
    expect_drawn_by_relation(schema, whole, minibatches[0], c.shape);
    expect_runs(schema, minibatches[0]);
  }
}

// Of each relation alone: a row of the block is an unbiased estimate of the mean over the relation.
TEST(TypedSampler, LayerWiseBlocksEstimateTheMeanOfEachRelation) {
  const auto schema = typed_schema(60);
  const Grid grid(test_world(), 1);
  if (test_world().size() > 1) GTEST_SKIP() << "a law of one rank";
  const auto m = normalize_rows(typed_matrix(grid, schema, typed_graph<std::int32_t>(schema, 12, false, 11),
                                             block_partition(60, grid.rows())),
                                false, false);
  const std::vector<std::int64_t> seeds = {0, 5, 3, 9};
  constexpr std::int64_t kBatches = 20000;
  for (const char* kind : {"ladies", "fastgcn"}) {
    const auto sampler = make_sampler(kind, m, {.fanout = {12}});
    // By seed and column.
    std::map<std::pair<std::int64_t, std::int64_t>, std::pair<double, double>> sums;
    for (std::int64_t first = 0; first < kBatches; first += 500) {
      std::vector<SeedBatch> batches;
      for (auto b = first; b < first + 500; ++b) batches.push_back({b, seeds});
      for (const auto& minibatch : sampler->sample({1}, batches, kSeed, kEpoch)) {
        const auto& block = minibatch.blocks[0];
        for (std::int64_t row = 0; row < block.rows; ++row)
          for (auto e = block.row_begin(row); e < block.row_end(row); ++e) {
            auto& [sum, squares] =
                sums[{row, schema.column(block.relations[e], minibatch.vertices[block.indices[e]])}];
            sum += block.values[e];
            squares += static_cast<double>(block.values[e]) * block.values[e];
          }
      }
    }
    for (std::int64_t row = 0; row < std::ssize(seeds); ++row)
      for (auto k = m.local.row_begin(seeds[row]); k < m.local.row_end(seeds[row]); ++k) {
        const auto [sum, squares] = sums[{row, m.local.indices[k]}];
        const double mean = sum / kBatches, error = std::sqrt((squares / kBatches - mean * mean) / kBatches);
        EXPECT_NEAR(mean, m.local.values[k], 5 * error + 1e-6)
            << kind << " row " << seeds[row] << " column " << m.local.indices[k];
      }
  }
}

TEST(TypedSampler, OfOneTypeAndRelationIsAPlainOne) {
  const Grid grid(test_world(), 1);
  const auto whole = random_graph<std::int32_t>(kNodes, 9, false, 11);
  auto plain = distribute(grid, whole, Topology::kPartitioned);
  // Another type without a vertex: columns are looked up, and are vertices.
  const Schema schema({{"vertex", 0, kNodes}, {"none", kNodes, kNodes}},
                      {{"edge", 0, 0, -1}, {"no", 1, 0, -1}});
  auto typed = plain;
  typed.columns = {Cpu{}, schema};
  for (const char* kind : {"graphsage", "labor"}) {
    const std::vector<std::int64_t> seeds = {0, 5, 1, 33, 8, 2};
    const SeedBatch batch = {test_world().rank() + 4, seeds};
    const SamplerShape shape = {.fanout = {4, 3}};
    const auto one = make_sampler(kind, plain, shape)->sample({1}, {&batch, 1}, kSeed, kEpoch),
               other = make_sampler(kind, typed, shape)->sample({1}, {&batch, 1}, kSeed, kEpoch);
    EXPECT_EQ(sample_digest(one[0]), sample_digest(other[0]));
    EXPECT_TRUE(std::ranges::equal(one[0].vertices, other[0].vertices));
  }
}

}  // namespace
}  // namespace espalier
