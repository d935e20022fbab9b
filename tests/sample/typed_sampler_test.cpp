// ranks: 1 3 6
// long ranks: 2 4 8
// Laws of sampling where columns are (relation, source): each relation's part of a row is drawn as
// a row of its own, with the stream and the fanout of the relation; a matrix of one type and one
// relation gives the minibatches of a plain one. That a minibatch is a function of (seed, epoch,
// batch) only: every_sampler_test.cpp.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "../../src/sample/expected_work.hpp"
#include "espalier/sample/block_value.hpp"
#include "espalier/sample/draw.hpp"
#include "espalier/sample/epoch_sampler.hpp"
#include "mpi_test.hpp"
#include "partition/owned.hpp"
#include "sample/sampling_laws.hpp"
#include "typed_graph.hpp"

namespace espalier {
namespace {

constexpr std::int64_t kTypedNodes = 157;
constexpr std::uint64_t kSeed = 7, kEpoch = 3;

// What the law says of a row's part: its picks, by brute force.
template <class Index>
std::set<std::int64_t> drawn(std::span<const Index> part, std::int64_t fanout, RandomStream stream) {
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

template <class Index>
void expect_drawn_by_relation(const Schema& schema, const Csr<Index>& whole, const Minibatch& minibatch,
                              const SamplerShape& shape) {
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
                                     l + 1,
                                     static_cast<std::uint64_t>(v),
                                     static_cast<std::uint64_t>(r)};
        EXPECT_EQ(picks[r], drawn<Index>({first, last}, fanout, stream))
            << "vertex " << v << ", relation " << r;
      }
      for (auto e = block.row_begin(row); e < block.row_end(row); ++e)
        EXPECT_EQ(block.values[e], mean_value(std::ssize(picks[block.relations[e]])));
    }
  }
}

TEST(TypedSampler, DrawsEachRelationsPartAsARow) {
  const auto schema = typed_schema(kTypedNodes);
  const auto whole = typed_graph<std::int32_t>(schema, 12, false, 11);
  const Grid grid(test_world(), 1);
  const auto a = typed_matrix(grid, schema, whole, block_partition(kTypedNodes, grid.rows()));
  const std::vector<std::int64_t> seeds = {0, 5, 1, 33, 8, 2};
  for (const SamplerShape& shape : {SamplerShape{.fanout = {4, 3}},
                                    SamplerShape{.fanout = {4, 3},
                                    .relation_fanout = {{4, 1, 0, 2, -1, 3, 2}, {-1, 2, 2, 2, 3, 1, 1}}}}) {
    const SeedBatch batch = {test_world().rank() + 4, seeds};
    const auto minibatches = make_sampler("graphsage", a, shape)->sample({1}, {&batch, 1}, kSeed, kEpoch);
    expect_drawn_by_relation(schema, whole, minibatches[0], shape);
    expect_runs(schema, minibatches[0]);
  }
}

// One type; rows of no entry to several hundred, half of a row's in one relation.
template <class Index>
Csr<Index> graph_of_relations(const Schema& schema) {
  constexpr std::int64_t kSizes[] = {0, 3, 15, 16, 17, 40, 64, 65, 130, 257, 520};
  const auto n = schema.nodes();
  Csr<Index> a;
  a.rows = n;
  a.columns = schema.columns();
  for (std::int64_t v = 0; v < n; ++v) {
    const RandomStream stream = {.seed = 5, .row = static_cast<std::uint64_t>(v)};
    std::uint64_t word = 0;
    const auto below = [&](std::int64_t bound) {
      return static_cast<std::int64_t>(random_below(stream, word++, static_cast<std::uint64_t>(bound)));
    };
    const auto of_one = schema.begin(static_cast<int>(below(std::ssize(schema.relations()))));
    std::set<std::int64_t> columns;
    for (auto k = kSizes[v % std::ssize(kSizes)]; k > 0; --k)
      columns.insert(k % 2 == 0 ? below(a.columns) : of_one + below(n));
    a.indices.insert(a.indices.end(), columns.begin(), columns.end());
    a.indptr.push_back(std::ssize(a.indices));
  }
  return a;
}

template <class Index>
void expect_drawn_of(int relations) {
  SCOPED_TRACE(testing::Message() << relations << " relations");
  constexpr std::int64_t kVertices = 311;
  std::vector<Relation> list;
  std::vector<std::int64_t> fanouts;
  for (int r = 0; r < relations; ++r) {
    list.push_back({fmt::format("r{}", r), 0, 0, -1});
    fanouts.push_back(r % 7 - 1);
  }
  const Schema schema({{"vertex", 0, kVertices}}, list);
  const auto whole = graph_of_relations<Index>(schema);
  const Grid grid(test_world(), 1);
  const auto a = typed_matrix(grid, schema, whole, block_partition(kVertices, grid.rows()));
  std::vector<std::int64_t> seeds(40);
  std::iota(seeds.begin(), seeds.end(), 3);
  const SeedBatch batch = {test_world().rank() + 4, seeds};
  for (const SamplerShape& shape : {SamplerShape{.fanout = {3, 2}}, SamplerShape{.fanout = {20, -1}},
                                    SamplerShape{.fanout = {3, 2}, .relation_fanout = {fanouts, fanouts}}}) {
    const auto minibatches = make_sampler("graphsage", a, shape)->sample({1}, {&batch, 1}, kSeed, kEpoch);
    expect_drawn_by_relation(schema, whole, minibatches[0], shape);
  }
}

// Few relations are looked at all at once, and so are the entries of short rows.
TEST(TypedSampler, DrawsFromPartsOfAnyLengthAndNumber) {
  for (const int relations : {2, 15, 16, 17, 31, 32, 33, 48, 49, 256}) {
    expect_drawn_of<std::int32_t>(relations);
    expect_drawn_of<std::int64_t>(relations);
  }
}

// Two relations of one type; only the rows of vertices 0 and 1 have entries, so that every column
// of the support shows. Row by row and relation by relation, as exact in binary.
Csr<std::int32_t> graph_of_two_rows(const Schema& schema) {
  Csr<std::int32_t> a;
  a.rows = schema.nodes();
  a.columns = schema.columns();
  const auto add = [&](int relation, std::vector<std::pair<std::int64_t, float>> entries) {
    for (const auto& [u, value] : entries) {
      a.indices.push_back(static_cast<std::int32_t>(schema.column(relation, u)));
      a.values.push_back(value);
    }
  };
  add(0, {{0, 0.5f}, {2, 0.25f}, {5, 0.75f}});
  add(1, {{0, 1.0f}, {1, 0.25f}, {2, 0.5f}});
  a.indptr.push_back(std::ssize(a.indices));
  add(0, {{2, 0.5f}, {4, 1.0f}});
  add(1, {{3, 0.5f}, {5, 0.125f}, {6, 0.75f}});
  while (std::ssize(a.indptr) <= a.rows) a.indptr.push_back(std::ssize(a.indices));
  return a;
}

// What the columns of each relation weigh: the sums of squares.
std::vector<Weights> weights_of_relations(const Schema& schema, const Csr<std::int32_t>& a) {
  std::vector<Weights> weights(schema.relations().size());
  for (std::int64_t k = 0; k < a.entries(); ++k)
    weights[schema.relation_of(a.indices[k])][a.indices[k]] += static_cast<double>(a.values[k]) * a.values[k];
  return weights;
}

// What a minibatch of one layer multiplied the columns of each relation by.
std::vector<Weights> factors_of_relations(const Schema& schema, const Csr<std::int32_t>& a,
                                          const Minibatch& minibatch) {
  std::vector<Weights> factors(schema.relations().size());
  const auto& block = minibatch.blocks[0];
  for (std::int64_t row = 0; row < block.rows; ++row)
    for (auto e = block.row_begin(row); e < block.row_end(row); ++e) {
      const auto column = schema.column(block.relations[e], minibatch.vertices[block.indices[e]]);
      const auto columns = a.row_indices(minibatch.vertices[row]);
      const auto found = std::ranges::find(columns, column);
      if (found == columns.end()) {
        ADD_FAILURE() << "row " << row << " has no column " << column;
        continue;
      }
      const auto entry = a.values[a.row_begin(minibatch.vertices[row]) + (found - columns.begin())];
      factors[block.relations[e]][column] = static_cast<double>(block.values[e]) / entry;
    }
  return factors;
}

// The draws of each relation, told by their factors, come as often as the enumerated law says,
// those of one whatever the other's; and no other comes. Exact: of that law the mean factor of
// every column is 1, so the estimate of each relation is unbiased.
TEST(TypedSampler, LayerWiseDrawsOfEachRelationFollowItsOwnLaw) {
  const Grid grid(test_world(), 1);
  if (test_world().size() > 1) GTEST_SKIP() << "a law of one rank";
  const Schema schema({{"vertex", 0, 8}}, {{"first", 0, 0, -1}, {"second", 0, 0, -1}});
  const auto whole = graph_of_two_rows(schema);
  const auto m = typed_matrix(grid, schema, whole, block_partition(8, 1));
  const auto weights = weights_of_relations(schema, whole);
  const std::vector<std::vector<Outcome>> laws = {law_of(weights[0], 2), law_of(weights[1], 3)};
  std::map<std::pair<std::int64_t, std::int64_t>, double> law;
  for (std::size_t first = 0; first < laws[0].size(); ++first)
    for (std::size_t second = 0; second < laws[1].size(); ++second)
      law[{first, second}] = laws[0][first].probability * laws[1][second].probability;
  for (int r = 0; r < 2; ++r) {
    Weights mean;
    for (const auto& outcome : laws[r])
      for (const auto& [u, factor] : outcome.factors) mean[u] += outcome.probability * factor;
    for (const auto& [u, weight] : weights[r]) EXPECT_NEAR(mean[u], 1, 1e-12) << "column " << u;
  }
  for (const char* kind : {"ladies", "fastgcn"}) {
    SCOPED_TRACE(kind);
    const auto sampler = make_sampler(kind, m, {.fanout = {7}, .relation_fanout = {{2, 3}}});
    std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> seen;
    sample_batches(*sampler, {0, 1}, 40000, kSeed, [&](const Minibatch& minibatch) {
      const auto factors = factors_of_relations(schema, whole, minibatch);
      std::int64_t outcomes[2];
      for (int r = 0; r < 2; ++r)
        outcomes[r] =
            std::ranges::find_if(
                laws[r], [&](const Outcome& outcome) { return alike(outcome.factors, factors[r], 1e-6); }) -
            laws[r].begin();
      ++seen[{outcomes[0], outcomes[1]}];
    });
    expect_law(law, seen);
  }
}

TEST(TypedSampler, OfOneTypeAndRelationIsAPlainOne) {
  const Grid grid(test_world(), 1);
  const auto whole = random_graph<std::int32_t>(kTypedNodes, 9, false, 11);
  auto plain = distribute(grid, whole, Topology::kPartitioned);
  // Another type without a vertex: columns are looked up, and are vertices.
  const Schema schema({{"vertex", 0, kTypedNodes}, {"none", kTypedNodes, kTypedNodes}},
                      {{"edge", 0, 0, -1}, {"no", 1, 0, -1}});
  auto typed = plain;
  typed.columns = {Cpu{}, schema};
  // Relation 0 draws as a plain graph does.
  const SamplerShape shape = {.fanout = {4, 3}},
                     by_relation = {.fanout = {4, 3}, .relation_fanout = {{4, 2}, {3, -1}}};
  const std::vector<std::int64_t> seeds = {0, 5, 1, 33, 8, 2};
  const SeedBatch batch = {test_world().rank() + 4, seeds};
  for (const auto& kind : sampler_kinds()) {
    const auto one = make_sampler(kind.name, plain, shape)->sample({1}, {&batch, 1}, kSeed, kEpoch);
    for (const auto& other_shape : {shape, by_relation}) {
      SCOPED_TRACE(kind.name);
      const auto other = make_sampler(kind.name, typed, other_shape)->sample({1}, {&batch, 1}, kSeed, kEpoch);
      EXPECT_EQ(sample_digest(one[0]), sample_digest(other[0]));
      EXPECT_TRUE(std::ranges::equal(one[0].vertices, other[0].vertices));
    }
  }
}

// What `auto` goes by is the same on every grid: each relation's entries, and what rows
// pick of each.
TEST(TypedSampler, TheModelKnowsTheRelations) {
  const auto schema = typed_schema(kTypedNodes);
  const auto whole = typed_graph<std::int32_t>(schema, 12, false, 11);
  std::vector<double> entries(schema.relations().size(), 0), picked(whole.rows, 0);
  for (std::int64_t v = 0; v < whole.rows; ++v) {
    std::vector<std::int64_t> of_row(entries.size(), 0);
    for (std::size_t r = 0; r < of_row.size(); ++r)
      of_row[r] = std::ranges::count_if(whole.row_indices(v), [&](std::int64_t column) {
        return schema.column(static_cast<int>(r), schema.types()[schema.relations()[r].source].begin) <=
                   column &&
               column < schema.column(static_cast<int>(r), schema.types()[schema.relations()[r].source].end);
      });
    for (std::size_t r = 0; r < of_row.size(); ++r) {
      entries[r] += static_cast<double>(of_row[r]);
      picked[v] += static_cast<double>(std::min<std::int64_t>(of_row[r], 2 + static_cast<std::int64_t>(r)));
    }
  }
  const SamplerShape shape = {.fanout = {3}, .relation_fanout = {{2, 3, 4, 5, 6, 7, 8}}};
  for (const int c : divisors(test_world().size())) {
    const Grid grid(test_world(), c);
    const auto rows =
        row_classes(typed_matrix(grid, schema, whole, block_partition(kTypedNodes, grid.rows())), shape);
    EXPECT_EQ(rows.of_relations, entries) << "c " << c;
    EXPECT_DOUBLE_EQ(rows.rows(), static_cast<double>(whole.rows));
    EXPECT_DOUBLE_EQ(rows.entries(), static_cast<double>(whole.entries()));
    double sum = 0;
    for (const auto& of : rows.classes) sum += of.rows * of.picks[0];
    EXPECT_DOUBLE_EQ(sum, std::accumulate(picked.begin(), picked.end(), 0.0));
  }
}

}  // namespace
}  // namespace espalier
