// ranks: 1 3
// long ranks: 2 4 6
// Laws of parts of edges, of every method: both directions of a pair are in one part, which is
// one of those asked for; what is printed is what a plain loop counts. (That any number of ranks
// makes the same: tests/app/partition_edges_test.py.)
// Of numbers: the same parts under other names, whose runs have fewer copies than runs of parts
// numbered at random. Of runs: in order, all rows used, near to even.
// Of ours: no part runs beyond its share; evening out gives no vertex another copy.
#include "espalier/partition/edge_parts.hpp"

#include <gtest/gtest.h>

#include <map>
#include <ranges>
#include <set>

#include "../../src/partition/edge_cut_methods.hpp"
#include "espalier/base/host_device.hpp"
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

/// side x side vertices, each beside four.
Pattern grid(std::int64_t side) {
  Csr<std::int64_t> graph;
  graph.rows = graph.columns = side * side;
  for (std::int64_t v = 0; v < graph.rows; ++v) {
    if (v >= side) graph.indices.push_back(v - side);
    if (v % side > 0) graph.indices.push_back(v - 1);
    graph.indptr.push_back(graph.entries());
  }
  return pattern_of(graph);
}

std::vector<std::int64_t> entries_of(const PartOfPair& pairs, int parts) {
  std::vector<std::int64_t> entries(static_cast<std::size_t>(parts), 0);
  for (const auto& [pair, part] : pairs) ++entries[part];
  return entries;
}

std::size_t copies_in_runs(const Pattern& whole, PartOfPair pairs, int parts, int rows) {
  const auto row_of = fold_parts(entries_of(pairs, parts), rows);
  for (auto& [pair, part] : pairs) part = static_cast<std::uint16_t>(row_of[part]);
  std::size_t copies = 0;
  for (const auto& of : parts_of_vertices(whole, pairs)) copies += of.size();
  return copies;
}

TEST(Numbers, AreOfTheSamePartsWhoseRunsHaveFewerCopies) {
  const auto whole = grid(48);
  const Mine mine(test_world(), whole, 64);
  auto parts = expand_evenly(mine.task);
  auto named = all_of(mine, whole, parts);
  number_parts(mine.task, parts);
  const auto numbered = all_of(mine, whole, parts);
  std::map<std::uint16_t, std::uint16_t> number;
  std::set<std::uint16_t> given;
  for (const auto& [pair, part] : named) {
    const auto [is, fresh] = number.emplace(part, numbered.at(pair));
    EXPECT_EQ(is->second, numbered.at(pair));
    if (fresh) EXPECT_TRUE(given.insert(is->second).second);
  }
  EXPECT_EQ(number.size(), 64U);
  std::size_t at_random = 0;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    std::vector<std::pair<std::uint64_t, std::uint16_t>> names;
    for (std::uint16_t p = 0; p < 64; ++p) names.emplace_back(mix(seed * 64 + p), p);
    std::ranges::sort(names);
    for (auto& [pair, part] : named) part = names[part].second;
    at_random += copies_in_runs(whole, named, 64, 8);
  }
  // A vertex has one copy at least: of those beyond, a third is saved at least.
  const auto least = static_cast<std::size_t>(whole.rows);
  EXPECT_LT(3 * (copies_in_runs(whole, numbered, 64, 8) - least), 2 * (at_random / 5 - least));
}

TEST(Numbers, AreTheSameOnAnyRanks) {
  const auto alone = test_world().split(test_world().rank(), 0);
  for (const auto& whole : patterns()) {
    const Mine together(test_world(), whole, 7), one(alone, whole, 7);
    auto parts = stream_pairs(together.task), by_one = stream_pairs(one.task);
    number_parts(together.task, parts), number_parts(one.task, by_one);
    EXPECT_EQ(all_of(together, whole, parts), all_of(one, whole, by_one));
  }
}

TEST(Runs, AreInOrderAndNearToEven) {
  EXPECT_EQ(fold_parts(std::vector<std::int64_t>{5, 5, 5, 5, 5}, 2), (std::vector{0, 0, 1, 1, 1}));
  EXPECT_EQ(fold_parts(std::vector<std::int64_t>{90, 1, 1, 1}, 3), (std::vector{0, 1, 2, 2}));
  EXPECT_EQ(fold_parts(std::vector<std::int64_t>{1, 2}, 4), (std::vector{0, 1}));
  for (std::uint64_t k = 0; k < 300; ++k) {
    std::vector<std::int64_t> entries(1 + mix(k) % 70);
    for (std::size_t p = 0; p < entries.size(); ++p)
      entries[p] = static_cast<std::int64_t>(mix(k * 100 + p) % (k % 3 == 0 ? 2 : 1000) >> (p % 7));
    const int rows = 1 + static_cast<int>(mix(k + 1000) % entries.size());
    const auto row_of = fold_parts(entries, rows);
    std::vector<std::int64_t> of_row(static_cast<std::size_t>(rows), 0);
    std::int64_t all = 0;
    for (std::size_t p = 0; p < entries.size(); ++p) {
      const int step = row_of[p] - (p > 0 ? row_of[p - 1] : 0);
      EXPECT_TRUE(step == 0 || (p > 0 && step == 1)) << k;
      of_row.at(row_of[p]) += entries[p];
      all += entries[p];
    }
    EXPECT_EQ(row_of.back(), rows - 1) << k;
    EXPECT_LE(std::ranges::max(of_row), all / rows + 1 + std::ranges::max(entries)) << k;
  }
}

// Pairs at random, so that nothing is even: parts are then nearer to each other, and vertices with
// several have fewer.
TEST(EvenOut, GivesNoVertexAnotherCopy) {
  const auto sparse = pattern_of(random_graph<std::int64_t>(300, 2, false, 4)),
             middling = pattern_of(random_graph<std::int64_t>(20000, 6, false, 4)),
             dense = pattern_of(random_graph<std::int64_t>(300, 20, false, 4));
  for (const auto& [whole, count] :
       {std::pair{star(400, 2), 3}, {sparse, 3}, {middling, 9}, {dense, 3}, {dense, 80}}) {
    const Mine mine(test_world(), whole, count);
    Buffer<std::uint16_t> parts;
    for (std::int64_t row = 0; row < mine.rows.rows; ++row)
      for (const auto u : mine.rows.row_indices(row)) {
        const auto v = mine.task.mine().begin + row;
        const auto word = mix(static_cast<std::uint64_t>(std::min(u, v) * whole.rows + std::max(u, v)));
        parts.push_back(
            static_cast<std::uint16_t>(count == 3 ? word % 7 % 3 : word % static_cast<std::uint64_t>(count)));
      }
    const auto before = parts_of_vertices(whole, all_of(mine, whole, parts));
    const auto uneven = quality_of(mine.task, parts);
    const auto most = even_out(mine.task, parts);
    const auto pairs = all_of(mine, whole, parts);
    const auto after = parts_of_vertices(whole, pairs);
    for (const auto& [pair, part] : pairs) ASSERT_EQ(part, pairs.at({pair.second, pair.first}));
    std::map<int, std::int64_t> vertices;
    for (std::size_t v = 0; v < before.size(); ++v) {
      EXPECT_LE(after[v].size(), before[v].size()) << v;
      for (const auto part : after[v]) ++vertices[part];
    }
    EXPECT_EQ(most, std::ranges::max(vertices | std::views::values));
    const auto even = quality_of(mine.task, parts);
    if (whole.rows != 400) EXPECT_LT(even.replication, uneven.replication);
    if (whole.entries() < dense.entries()) EXPECT_LT(even.vertex_balance, uneven.vertex_balance);
  }
}

}  // namespace
}  // namespace espalier
