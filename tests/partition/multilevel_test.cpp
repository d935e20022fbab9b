// ranks: 1 2 3 8
// long ranks: 4 6
// Laws: the tree of clusters halves them; the price of a clustering is the sum of the cuts of all
// scales, counted here edge by edge; refinement never raises it, keeps every limit that held, and
// empties parts that are too full; planted blocks are found, and balanced; numbers have no gaps;
// the clusters are the same on all ranks together as on one alone and on the others.

#include <gtest/gtest.h>

#include <set>

#include "../../src/partition/multilevel.hpp"
#include "espalier/partition/partition_methods.hpp"
#include "mpi_test.hpp"
#include "whole_graph.hpp"

namespace espalier {
namespace {

TEST(ClusterTree, HalvesDownToSingleClusters) {
  for (const int clusters : {1, 2, 3, 5, 8, 13, 1000, 1024, 65536}) {
    const ClusterTree tree(clusters);
    EXPECT_EQ(tree.clusters(), clusters);
    EXPECT_EQ(1 << tree.depth() >= clusters, true);
    EXPECT_EQ(tree.clusters_below(1), clusters);
    for (int node = 1; 2 * node < tree.nodes(); ++node) {
      const int first = tree.clusters_below(2 * node), second = tree.clusters_below(2 * node + 1);
      EXPECT_EQ(first + second, tree.clusters_below(node));
      EXPECT_LE(std::abs(first - second), 1);
    }
    for (int cluster = 0; cluster < clusters; ++cluster) {
      EXPECT_EQ(tree.cluster(tree.code(cluster)), cluster);
      if (cluster == 0) continue;
      EXPECT_LT(tree.code(cluster - 1), tree.code(cluster));
      const int parting = tree.parting(tree.code(cluster - 1), tree.code(cluster));
      for (int depth = 0; depth <= tree.depth(); ++depth)
        EXPECT_EQ(tree.node(tree.code(cluster - 1), depth) != tree.node(tree.code(cluster), depth),
                  depth >= parting);
    }
  }
}

// The cuts of all scales, an edge once; up to 32 parts twice.
std::int64_t price_of(const WholeGraph& graph, const ClusterTree& tree,
                      const std::vector<std::uint16_t>& codes) {
  std::int64_t price = 0;
  for (int depth = 1; depth <= tree.depth(); ++depth)
    for (const auto& [place, weight] : graph.entries)
      if (tree.node(codes[place.first], depth) != tree.node(codes[place.second], depth))
        price += (depth <= 5 ? 2 : 1) * weight;
  return price / 2;
}

std::int64_t excess_of(const WholeGraph& graph, const ClusterTree& tree,
                       const std::vector<ClusterWeights>& limits, const std::vector<std::uint16_t>& codes) {
  std::vector<ClusterWeights> loads(limits.size(), ClusterWeights{});
  for (std::int64_t v = 0; v < graph.nodes; ++v)
    for (int depth = 0; depth <= tree.depth(); ++depth)
      loads[tree.node(codes[v], depth)] += graph.vertex_weights[v];
  std::int64_t excess = 0;
  for (std::size_t node = 1; node < loads.size(); ++node)
    for (std::size_t kind = 0; kind < limits[node].size(); ++kind)
      excess += std::max<std::int64_t>(loads[node][kind] - limits[node][kind], 0);
  return excess;
}

using Limits = std::vector<ClusterWeights>;

// Refines for some rounds, one call each, and looks at every state.
ClusteringState expect_descent(const WholeGraph& graph, const ClusterTree& tree,
                               const std::vector<std::uint16_t>& start, const Limits& limits, int rounds) {
  const auto& comm = test_world();
  const auto level = level_of(comm, graph);
  Buffer<std::uint16_t> codes(start.begin() + level.mine.begin, start.begin() + level.mine.end);
  auto before = refine_clusters(comm, level, tree, {limits, 0, 0}, codes);
  EXPECT_EQ(before.price, price_of(graph, tree, start));
  EXPECT_EQ(before.excess, excess_of(graph, tree, limits, start));
  for (int round = 0; round < rounds; ++round) {
    const RefinementOptions options{limits, static_cast<std::uint64_t>(round), 1};
    const auto now = refine_clusters(comm, level, tree, options, codes);
    const auto all = all_of(comm, codes);
    EXPECT_EQ(now.price, price_of(graph, tree, all));
    EXPECT_EQ(now.excess, excess_of(graph, tree, limits, all));
    EXPECT_LE(now.excess, before.excess);
    if (now.excess == before.excess) EXPECT_LE(now.price, before.price);
    for (const auto code : all) EXPECT_GE(tree.cluster(code), 0);
    before = now;
  }
  return before;
}

Limits usual_limits(const WholeGraph& graph, const ClusterTree& tree) {
  return part_limits(test_world(), level_of(test_world(), graph), tree);
}

TEST(RefineClusters, NeverRaisesThePriceAndKeepsLimits) {
  const auto graph = skewed_graph(400, 1600, 4, test_seed(11));
  for (const int clusters : {2, 7, 100}) {
    const ClusterTree tree(clusters);
    std::vector<std::uint16_t> start;
    for (std::int64_t v = 0; v < graph.nodes; ++v) start.push_back(tree.code(static_cast<int>(v % clusters)));
    const auto end = expect_descent(graph, tree, start, usual_limits(graph, tree), 12);
    // Of a hundred clusters each has four vertices, and hardly room for a fifth.
    EXPECT_LT(end.price, price_of(graph, tree, start) * (clusters == 100 ? 99 : 95) / 100);
  }
}

TEST(RefineClusters, EmptiesWhatIsTooFull) {
  const auto graph = planted_blocks(8, 50, 5, test_seed(12));
  const ClusterTree tree(8);
  const std::vector<std::uint16_t> start(static_cast<std::size_t>(graph.nodes), tree.code(3));
  const auto end = expect_descent(graph, tree, start, usual_limits(graph, tree), 40);
  EXPECT_EQ(end.excess, 0);
}

// Pairs that are torn apart, each half with a friend where it is: one of them should move, and not
// both, which costs more than nothing.
TEST(RefineClusters, TakesBackWhatRaisesThePrice) {
  WholeGraph graph;
  graph.nodes = 800;
  std::vector<std::uint16_t> start;
  for (std::int64_t v = 0; v < graph.nodes; ++v) start.push_back(static_cast<std::uint16_t>(v / 2 % 2));
  for (std::int64_t v = 0; v < graph.nodes; v += 4) {
    graph.join(v, v + 1, 6);
    graph.join(v + 2, v + 3, 6);
    graph.join(v, v + 2, 10);
  }
  weigh_vertices(graph, 4);
  const ClusterTree tree(2);
  const Limits none(static_cast<std::size_t>(tree.nodes()), {9999, 9999, 9999, 9999, 9999});
  expect_descent(graph, tree, start, none, 12);
  const auto& comm = test_world();
  const auto level = level_of(comm, graph);
  Buffer<std::uint16_t> codes(start.begin() + level.mine.begin, start.begin() + level.mine.end);
  const auto end = refine_clusters(comm, level, tree, {none, 1, 16}, codes);
  EXPECT_LT(end.price, price_of(graph, tree, start));
}

std::vector<std::uint16_t> cluster(const Communicator& comm, const WholeGraph& graph,
                                   const MultilevelOptions& options) {
  return all_of(comm,
                cluster_by_multilevel(comm, rows_of(comm, graph).first, weights_of(comm, graph), options));
}

int count_of(const std::vector<std::uint16_t>& clusters) {
  const std::set<std::uint16_t> distinct(clusters.begin(), clusters.end());
  if (!distinct.empty()) EXPECT_EQ(*distinct.rbegin() + 1, static_cast<int>(distinct.size())) << "a gap";
  return static_cast<int>(distinct.size());
}

TEST(Multilevel, IsTheSameOnAnyNumberOfRanks) {
  if (!has_metis()) GTEST_SKIP() << "built without METIS";
  const auto& comm = test_world();
  const auto graph = skewed_graph(1500, 6000, 1, test_seed(13));
  const MultilevelOptions options{8, 7, 80, 8};
  const auto together = cluster(comm, graph, options);
  // Rank 0 alone, and the others without it.
  EXPECT_EQ(together, cluster(comm.split(comm.rank() > 0, 0), graph, options));
  EXPECT_EQ(together.size(), static_cast<std::size_t>(graph.nodes));
  EXPECT_EQ(count_of(together), 8);
}

// How many vertices are in the cluster that most of their block is in.
std::int64_t matched(const WholeGraph& graph, int blocks, const std::vector<std::uint16_t>& clusters) {
  std::vector<std::map<std::uint16_t, std::int64_t>> together(static_cast<std::size_t>(blocks));
  for (std::int64_t v = 0; v < graph.nodes; ++v) ++together[v % blocks][clusters[v]];
  std::int64_t matched = 0;
  for (const auto& of_block : together) {
    std::int64_t most = 0;
    for (const auto& [cluster, count] : of_block) most = std::max(most, count);
    matched += most;
  }
  return matched;
}

TEST(Multilevel, FindsPlantedBlocks) {
  if (!has_metis()) GTEST_SKIP() << "built without METIS";
  const auto graph = planted_blocks(16, 60, 6, test_seed(14));
  const auto found = cluster(test_world(), graph, {16, 3, 200, 16});
  EXPECT_EQ(count_of(found), 16);
  EXPECT_GE(matched(graph, 16, found), graph.nodes * 95 / 100);
}

TEST(Multilevel, LongFindsPlantedBlocksOfALargeGraph) {
  if (!has_metis()) GTEST_SKIP() << "built without METIS";
  const auto graph = planted_blocks(64, 1500, 6, test_seed(16));
  const auto together = cluster(test_world(), graph, {64, 3, 2000, 16});
  EXPECT_EQ(count_of(together), 64);
  EXPECT_GE(matched(graph, 64, together), graph.nodes * 95 / 100);
}

TEST(Multilevel, BalancesEveryKindOfWeight) {
  if (!has_metis()) GTEST_SKIP() << "built without METIS";
  const auto graph = skewed_graph(2000, 6000, 1, test_seed(15));
  const auto found = cluster(test_world(), graph, {16, 1, 200, 16});
  constexpr std::array<double, 5> kMost = {1.04, 1.16, 1.04, 1.06, 1.06};
  for (const int parts : {2, 4, 8})
    for (std::size_t kind = 0; kind < kMost.size(); ++kind) {
      std::vector<std::int64_t> loads(static_cast<std::size_t>(parts), 0);
      std::int64_t total = 0;
      for (std::int64_t v = 0; v < graph.nodes; ++v) {
        loads[found[v] * parts / 16] += graph.vertex_weights[v][kind];
        total += graph.vertex_weights[v][kind];
      }
      EXPECT_LE(static_cast<double>(*std::max_element(loads.begin(), loads.end())) * parts /
                    static_cast<double>(total),
                kMost[kind])
          << parts << " parts, " << kBalanceNames[kind];
    }
}

TEST(Multilevel, TakesGraphsThatAreSmallOrWithoutEdges) {
  if (!has_metis()) GTEST_SKIP() << "built without METIS";
  for (const std::int64_t nodes : {0, 1, 3, 40}) {
    WholeGraph graph;
    graph.nodes = nodes;
    weigh_vertices(graph);
    const auto alone = cluster(test_world(), graph, {16, 1, 20, 4});
    EXPECT_EQ(static_cast<std::int64_t>(alone.size()), nodes);
    EXPECT_LE(count_of(alone), std::min<std::int64_t>(nodes, 16));
    for (std::int64_t v = 1; v < nodes; ++v) graph.join(v - 1, v);
    const auto one = cluster(test_world(), graph, {1, 1, 20, 4});
    EXPECT_EQ(count_of(one), nodes > 0);
    const auto path = cluster(test_world(), graph, {16, 1, 20, 4});
    EXPECT_LE(count_of(path), std::min<std::int64_t>(nodes, 16));
  }
}

}  // namespace
}  // namespace espalier
