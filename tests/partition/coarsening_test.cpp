// ranks: 1 2 3 8
// long ranks: 4 6
// Laws: a contraction is P^T A P, added up entry by entry here; what it leaves and what became
// inner is all weight there was, for edges and for every kind of vertex weight. Labels keep their
// limits exactly, are vertices, join neighbours or two of a kind, and shrink stars. A symmetric
// pattern is A + A^T without its diagonal. None of it depends on the number of ranks: the same on
// all ranks together as on one alone.
#include <gtest/gtest.h>

#include <set>

#include "../../src/partition/multilevel.hpp"
#include "../../src/partition/partition_pattern.hpp"
#include "mpi_test.hpp"
#include "whole_graph.hpp"

namespace espalier {
namespace {

// P^T A P by a map, P given by labels; the diagonal apart.
struct Product {
  WholeGraph graph;
  std::int64_t diagonal = 0;
};

Product multiply(const WholeGraph& fine, const std::vector<std::int64_t>& labels) {
  std::map<std::int64_t, std::int64_t> number;
  for (const auto label : labels) number[label] = 0;
  Product product;
  for (auto& entry : number) entry.second = product.graph.nodes++;
  product.graph.vertex_weights.assign(number.size(), ClusterWeights{});
  for (std::size_t v = 0; v < labels.size(); ++v)
    product.graph.vertex_weights[number[labels[v]]] += fine.vertex_weights[v];
  for (const auto& [place, weight] : fine.entries) {
    const auto row = number[labels[place.first]], column = number[labels[place.second]];
    if (row == column)
      product.diagonal += weight;
    else
      product.graph.entries[{row, column}] += weight;
  }
  return product;
}

void expect_product(const WholeGraph& fine, const std::vector<std::int64_t>& labels) {
  const auto& comm = test_world();
  const auto mine = even_range(fine.nodes, comm.size(), comm.rank());
  const auto made =
      contract(comm, level_of(comm, fine), {labels.begin() + mine.begin, labels.begin() + mine.end});
  const auto expected = multiply(fine, labels);
  const auto coarse = whole_of(comm, made.coarse);
  EXPECT_EQ(coarse.nodes, expected.graph.nodes);
  EXPECT_EQ(coarse.entries, expected.graph.entries);
  EXPECT_EQ(coarse.vertex_weights, expected.graph.vertex_weights);
  EXPECT_EQ(made.coarse.inside, expected.diagonal);
  EXPECT_EQ(total_edge_weight(comm, made.coarse) + made.coarse.inside, fine.weight());
  const auto parent = all_of(comm, made.parent);
  for (std::size_t v = 0; v < labels.size(); ++v)
    for (std::size_t u = 0; u < v; ++u) {
      EXPECT_EQ(parent[u] < parent[v], labels[u] < labels[v]);
      EXPECT_EQ(parent[u] == parent[v], labels[u] == labels[v]);
    }
}

TEST(Contract, IsTheProductOfMatrices) {
  for (const std::int64_t nodes : {1, 5, 60}) {
    const auto seed = test_seed(static_cast<std::uint64_t>(nodes));
    SCOPED_TRACE(seed);
    const auto graph = skewed_graph(nodes, 4 * nodes, std::int64_t{1} << 40, seed);
    std::vector<std::int64_t> same(graph.nodes, nodes - 1), own, some;
    for (std::int64_t v = 0; v < nodes; ++v) {
      own.push_back(v);
      some.push_back(static_cast<std::int64_t>(random_below(
          {.seed = seed, .row = static_cast<std::uint64_t>(v)}, 0, static_cast<std::uint64_t>(nodes))));
    }
    for (const auto& labels : {same, own, some}) expect_product(graph, labels);
  }
}

TEST(Contract, AddsWeightUpLevelByLevel) {
  const auto& comm = test_world();
  const auto graph = skewed_graph(500, 2000, 3, test_seed(3));
  auto level = level_of(comm, graph);
  const auto vertices = total_weights(comm, level);
  for (int depth = 0; depth < 3; ++depth) {
    const auto labels = cluster_vertices(comm, level, {{8 << depth, 400, 20, 20, 20}, 1, 4});
    level = contract(comm, level, labels).coarse;
    EXPECT_EQ(total_edge_weight(comm, level) + level.inside, graph.weight());
    EXPECT_EQ(total_weights(comm, level), vertices);
  }
  EXPECT_LT(level.nodes, 250);
}

std::vector<std::int64_t> labels_of(const Communicator& comm, const WholeGraph& graph,
                                    const ClusteringOptions& options) {
  return all_of(comm, cluster_vertices(comm, level_of(comm, graph), options));
}

TEST(ClusterVertices, KeepsLimitsAndTheSameOnAnyNumberOfRanks) {
  const auto& comm = test_world();
  const auto graph = skewed_graph(600, 3000, 5, test_seed(4));
  const ClusteringOptions options{{12, 90, 7, 4, 4}, 9, 6};
  const auto labels = labels_of(comm, graph, options);
  EXPECT_EQ(labels, labels_of(comm.split(comm.rank(), 0), graph, options));
  std::map<std::int64_t, ClusterWeights> loads;
  std::map<std::int64_t, int> sizes;
  for (std::int64_t v = 0; v < graph.nodes; ++v) {
    EXPECT_TRUE(labels[v] >= 0 && labels[v] < graph.nodes);
    loads[labels[v]] += graph.vertex_weights[v];
    ++sizes[labels[v]];
  }
  for (const auto& [label, load] : loads)
    for (std::size_t kind = 0; kind < load.size(); ++kind)
      if (sizes[label] > 1) EXPECT_LE(load[kind], options.limit[kind]) << label;
  EXPECT_LT(loads.size(), 200u);
}

// Of a star nobody but the centre has a neighbour; of vertices without edges nobody.
TEST(ClusterVertices, ShrinksStarsAndWhatIsAlone) {
  const auto& comm = test_world();
  WholeGraph graph;
  graph.nodes = 1200;
  for (std::int64_t leaf = 1; leaf < 600; ++leaf) graph.join(0, leaf);
  weigh_vertices(graph);
  const auto labels = labels_of(comm, graph, {{10, 10000, 100, 100, 100}, 2, 4});
  EXPECT_LE(std::set<std::int64_t>(labels.begin(), labels.begin() + 600).size(), 61u);
  EXPECT_LE(std::set<std::int64_t>(labels.begin() + 600, labels.end()).size(), 65u);
}

TEST(ClusterVertices, JoinsBlocksAndNotAcross) {
  const auto& comm = test_world();
  const auto graph = planted_blocks(10, 20, 8, test_seed(6));
  const auto labels = labels_of(comm, graph, {{20, 100000, 100, 100, 100}, 3, 12});
  std::int64_t across = 0, all = 0;
  for (const auto& [place, weight] : graph.entries)
    if (labels[place.first] == labels[place.second]) ++all, across += place.first % 10 != place.second % 10;
  EXPECT_GT(all, static_cast<std::int64_t>(graph.entries.size()) / 3);
  EXPECT_LE(across, all / 100);
}

TEST(SymmetricPattern, IsBothDirectionsWithoutLoops) {
  const auto& comm = test_world();
  for (const bool symmetric : {false, true})
    for (const std::int64_t nodes : {1, 4, 70}) {
      std::set<std::pair<std::int64_t, std::int64_t>> given, expected;
      for (std::int64_t e = 0; e < 5 * nodes; ++e) {
        const RandomStream stream = {.seed = test_seed(8), .row = static_cast<std::uint64_t>(e)};
        const auto u = static_cast<std::int64_t>(random_below(stream, 0, static_cast<std::uint64_t>(nodes)));
        const auto v = static_cast<std::int64_t>(random_below(stream, 1, static_cast<std::uint64_t>(nodes)));
        given.insert({u, v});
        if (symmetric) given.insert({v, u});
        if (u != v) expected.insert({u, v}), expected.insert({v, u});
      }
      const auto mine = even_range(nodes, comm.size(), comm.rank());
      Csr<std::int64_t> rows{mine.size(), nodes, {}, {}, {}};
      rows.indptr.assign(static_cast<std::size_t>(mine.size()) + 1, 0);
      for (const auto& [row, column] : given)
        if (row >= mine.begin && row < mine.end) {
          rows.indices.push_back(column);
          for (auto r = row - mine.begin + 1; r <= mine.size(); ++r) ++rows.indptr[r];
        }
      const auto pattern = symmetric_pattern(comm, std::move(rows));
      EXPECT_EQ(pattern.rows, mine.size());
      EXPECT_EQ(pattern.columns, nodes);
      std::vector<std::pair<std::int64_t, std::int64_t>> found, wanted;
      for (std::int64_t row = 0; row < pattern.rows; ++row)
        for (const auto column : pattern.row_indices(row)) found.emplace_back(mine.begin + row, column);
      for (const auto& place : expected)
        if (place.first >= mine.begin && place.first < mine.end) wanted.push_back(place);
      EXPECT_EQ(found, wanted);
    }
}

}  // namespace
}  // namespace espalier
