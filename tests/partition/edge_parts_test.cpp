// ranks: 1 3
// long ranks: 2 4 6
// Laws of parts of edges, of every method: both directions of a pair are in one part, which is
// one of those asked for; any number of ranks makes the same; what is printed is what a plain
// loop counts.
// Of ours: no part runs beyond its share; evening out gives no vertex another copy.
#include "espalier/partition/edge_parts.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "../../src/partition/cut_by.hpp"
#include "espalier/base/mix.hpp"
#include "mpi_test.hpp"
#include "random_graph.hpp"

namespace espalier {
namespace {

using Pattern = Csr<std::int64_t>;
// Both directions.
using PartOfPair = std::map<std::pair<std::int64_t, std::int64_t>, std::uint16_t>;

/// Of the pairs of a graph, both directions, without loops.
Pattern pattern_of(const Csr<std::int64_t>& graph) {
  std::vector<std::set<std::int64_t>> rows(static_cast<std::size_t>(graph.rows));
  for (std::int64_t v = 0; v < graph.rows; ++v)
    for (const auto u : graph.row_indices(v))
      if (u != v) rows[u].insert(v), rows[v].insert(u);
  Pattern pattern;
  pattern.rows = pattern.columns = graph.rows;
  for (const auto& row : rows) {
    pattern.indices.insert(pattern.indices.end(), row.begin(), row.end());
    pattern.indptr.push_back(pattern.entries());
  }
  return pattern;
}

/// Hubs, a vertex of one pair each, one without any.
Pattern star(std::int64_t n, std::int64_t hubs) {
  Csr<std::int64_t> graph;
  graph.rows = graph.columns = n;
  for (std::int64_t v = 0; v < n; ++v) {
    if (v >= hubs && v < n - 1) graph.indices.push_back(v % hubs);
    graph.indptr.push_back(graph.entries());
  }
  return pattern_of(graph);
}

std::vector<Pattern> patterns() {
  return {pattern_of(random_graph<std::int64_t>(60, 4, false, 5)),
          pattern_of(random_graph<std::int64_t>(300, 6, false, 8)), star(200, 3), star(9, 1), star(1, 1)};
}

/// The rows of this rank, beside the task that has them.
struct Mine {
  Mine(const Communicator& world, const Pattern& whole, int parts, std::uint64_t seed = 1)
      : task{world, whole.rows, rows, parts, seed} {
    const auto range = task.mine();
    rows.rows = range.size();
    rows.columns = whole.columns;
    for (auto v = range.begin; v < range.end; ++v) {
      for (const auto u : whole.row_indices(v)) rows.indices.push_back(u);
      rows.indptr.push_back(rows.entries());
    }
  }
  Mine(const Mine&) = delete;
  Mine& operator=(const Mine&) = delete;

  Pattern rows;
  EdgeCutTask task;
};

/// Collective. The parts of all pairs.
PartOfPair all_of(const Mine& mine, const Pattern& whole, const Buffer<std::uint16_t>& parts) {
  EXPECT_EQ(std::ssize(parts), mine.rows.entries());
  const auto all = mine.task.world.all_gather_v(std::span<const std::uint16_t>(parts), "test");
  PartOfPair found;
  for (std::int64_t v = 0; v < whole.rows; ++v)
    for (auto e = whole.row_begin(v); e < whole.row_end(v); ++e) found[{v, whole.indices[e]}] = all[e];
  return found;
}

std::vector<std::set<std::uint16_t>> parts_of_vertices(const Pattern& whole, const PartOfPair& parts) {
  std::vector<std::set<std::uint16_t>> of(static_cast<std::size_t>(whole.rows));
  for (const auto& [pair, part] : parts) of[pair.first].insert(part);
  return of;
}

class EveryCut : public testing::TestWithParam<const EdgeCutMethod*> {};

TEST_P(EveryCut, GivesEachPairOnePart) {
  for (const auto& whole : patterns())
    for (const int count : {1, 2, 7, 300}) {
      const Mine mine(test_world(), whole, count);
      const auto parts = all_of(mine, whole, GetParam()->parts(mine.task));
      for (const auto& [pair, part] : parts) {
        ASSERT_LT(part, count);
        ASSERT_EQ(part, parts.at({pair.second, pair.first})) << pair.first << " " << pair.second;
      }
    }
}

TEST_P(EveryCut, MakesTheSameOnAnyRanks) {
  const auto alone = test_world().split(test_world().rank(), 0);
  for (const auto& whole : patterns())
    for (const std::uint64_t seed : {1, 2}) {
      const Mine together(test_world(), whole, 5, seed), one(alone, whole, 5, seed);
      EXPECT_EQ(all_of(together, whole, GetParam()->parts(together.task)),
                all_of(one, whole, GetParam()->parts(one.task)));
    }
}

TEST_P(EveryCut, IsAsGoodAsAPlainLoopCounts) {
  for (const auto& whole : patterns()) {
    const Mine mine(test_world(), whole, 4);
    const auto part = GetParam()->parts(mine.task);
    const auto parts = all_of(mine, whole, part);
    const auto of = parts_of_vertices(whole, parts);
    double vertices = 0, copies = 0, interior = 0;
    std::vector<double> most(4, 0), pairs(4, 0);
    for (const auto& one : of) {
      vertices += !one.empty();
      copies += static_cast<double>(one.size());
      interior += one.size() == 1;
      for (const auto p : one) ++most[p];
    }
    for (const auto& [pair, p] : parts) pairs[p] += 0.5;
    const auto quality = quality_of(mine.task, part);
    if (vertices == 0) continue;
    EXPECT_DOUBLE_EQ(quality.replication, copies / vertices);
    EXPECT_DOUBLE_EQ(quality.interior, interior / vertices);
    EXPECT_DOUBLE_EQ(quality.vertex_balance, std::ranges::max(most) / std::ranges::min(most));
    EXPECT_DOUBLE_EQ(quality.edge_balance, std::ranges::max(pairs) / std::ranges::min(pairs));
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryCut, testing::ValuesIn([] {
                           std::vector<const EdgeCutMethod*> all;
                           for (const auto& method : edge_cut_methods()) all.push_back(&method);
                           return all;
                         }()),
                         [](const auto& method) { return std::string(method.param->name); });

TEST(Expansion, KeepsPartsWithinTheirShare) {
  const auto whole = pattern_of(random_graph<std::int64_t>(2000, 8, false, 3));
  const Mine mine(test_world(), whole, 8);
  const auto ours = quality_of(mine.task, expand_evenly(mine.task)),
             streamed = quality_of(mine.task, stream_pairs(mine.task));
  EXPECT_LE(ours.edge_balance, 1.10);
  EXPECT_LT(ours.replication, streamed.replication);
}

// Pairs at random, so that nothing is even: parts of all are then nearer to each other.
TEST(EvenOut, GivesNoVertexAnotherCopy) {
  for (const auto& whole : {star(400, 2), pattern_of(random_graph<std::int64_t>(300, 2, false, 4))}) {
    const Mine mine(test_world(), whole, 3);
    Buffer<std::uint16_t> parts;
    for (std::int64_t row = 0; row < mine.rows.rows; ++row)
      for (const auto u : mine.rows.row_indices(row)) {
        const auto v = mine.task.mine().begin + row;
        const auto word = mix(static_cast<std::uint64_t>(std::min(u, v) * whole.rows + std::max(u, v)));
        parts.push_back(static_cast<std::uint16_t>(word % 7 % 3));
      }
    const auto before = parts_of_vertices(whole, all_of(mine, whole, parts));
    const auto uneven = quality_of(mine.task, parts);
    even_out(mine.task, parts);
    const auto pairs = all_of(mine, whole, parts);
    const auto after = parts_of_vertices(whole, pairs);
    for (const auto& [pair, part] : pairs) ASSERT_EQ(part, pairs.at({pair.second, pair.first}));
    for (std::size_t v = 0; v < before.size(); ++v) EXPECT_LE(after[v].size(), before[v].size()) << v;
    EXPECT_LT(quality_of(mine.task, parts).vertex_balance, uneven.vertex_balance);
  }
}

}  // namespace
}  // namespace espalier
