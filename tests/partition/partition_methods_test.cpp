// ranks: 1 3
// long ranks: 2 4 6
// Laws, of every method: each vertex is in one cluster, none is empty; weights of clusters add up
// to the graph's; any number of ranks makes the same clusters as one; the seed decides. Of a
// graph of communities, METIS and streaming find them. Cuts and copies are those that a plain
// loop counts.
#include "espalier/partition/partition_methods.hpp"

#include <gtest/gtest.h>

#include <set>

#include "espalier/base/error.hpp"
#include "espalier/base/host_device.hpp"
#include "mpi_test.hpp"
#include "random_graph.hpp"
#include "user_error.hpp"

namespace espalier {
namespace {

using Graph = Csr<std::int64_t>;

Graph rows_of(const Graph& graph, std::int64_t begin, std::int64_t end) {
  Graph part;
  part.rows = end - begin;
  part.columns = graph.columns;
  for (auto v = begin; v < end; ++v) {
    for (const auto u : graph.row_indices(v)) part.indices.push_back(u);
    part.indptr.push_back(part.entries());
  }
  return part;
}

ClusterWeights weights_of(const Graph& graph, std::int64_t v) {
  const auto split = mix(static_cast<std::uint64_t>(v)) % 10;
  return {1, graph.row_size(v), split < 5, split >= 5 && split < 7, split >= 7};
}

VertexPartitionTask task_of(const Communicator& world, const Graph& graph, int clusters,
                            std::uint64_t seed = 1) {
  VertexPartitionTask task{
      .world = world,
      .nodes = graph.rows,
      .edges = graph.entries(),
      .clusters = clusters,
      .seed = seed,
      .fast = seed % 2 == 0,
      .weights = {},
      .read_rows = [&graph](auto begin, auto end) { return rows_of(graph, begin, end); }};
  for (auto v = task.mine().begin; v < task.mine().end; ++v) task.weights.push_back(weights_of(graph, v));
  return task;
}

/// Clusters of my vertices at random.
Buffer<std::uint16_t> random_clusters(const VertexPartitionTask& task) {
  Buffer<std::uint16_t> mine;
  for (auto v = task.mine().begin; v < task.mine().end; ++v)
    mine.push_back(
        static_cast<std::uint16_t>(random_below({.seed = task.seed, .row = static_cast<std::uint64_t>(v)}, 0,
                                                static_cast<std::uint64_t>(task.clusters))));
  return mine;
}

/// The clusters of all vertices.
std::vector<std::uint16_t> all_of(const VertexPartitionTask& task, const char* method) {
  const auto mine = partition_method(method).clusters(task);
  EXPECT_EQ(std::ssize(mine), task.mine().size()) << method;
  const auto all = task.world.all_gather_v(std::span<const std::uint16_t>(mine), "test");
  return {all.begin(), all.end()};
}

Graph of_edges(std::int64_t n, const std::set<std::pair<std::int64_t, std::int64_t>>& edges) {
  Graph graph;
  graph.rows = graph.columns = n;
  auto edge = edges.begin();
  for (std::int64_t v = 0; v < n; ++v) {
    for (; edge != edges.end() && edge->first == v; ++edge) graph.indices.push_back(edge->second);
    graph.indptr.push_back(graph.entries());
  }
  return graph;
}

/// Communities of 30 vertices, ids v % communities; edges within, and some to the next community.
Graph communities(std::int64_t count) {
  std::set<std::pair<std::int64_t, std::int64_t>> edges;
  const auto n = 30 * count;
  const auto add = [&](std::int64_t v, std::int64_t u) {
    if (v != u) edges.insert({v, u}), edges.insert({u, v});
  };
  for (std::int64_t v = 0; v < n; ++v) {
    for (std::uint64_t k = 0; k < 6; ++k)
      add(v, v % count + count * static_cast<std::int64_t>(
                                     random_below({.row = static_cast<std::uint64_t>(v)}, k, 30)));
    if (v < 2 * count) add(v, (v + 1) % n);
  }
  return of_edges(n, edges);
}

std::vector<Graph> awkward_graphs() {
  std::set<std::pair<std::int64_t, std::int64_t>> path, star;
  for (std::int64_t v = 1; v < 40; ++v) {
    path.insert({v, v - 1}), path.insert({v - 1, v});
    star.insert({v, 0}), star.insert({0, v});
  }
  return {of_edges(40, {}), of_edges(40, path), of_edges(40, star),
          random_graph<std::int64_t>(60, 4, false, 5), of_edges(7, {{0, 0}, {3, 2}})};
}

class EveryMethod : public testing::TestWithParam<const VertexPartitionMethod*> {
 protected:
  const char* method() const { return GetParam()->name; }
};

TEST_P(EveryMethod, FillsEveryClusterOfAwkwardGraphs) {
  for (const auto& graph : awkward_graphs())
    for (const int clusters : {1, 2, 5, static_cast<int>(graph.rows)}) {
      const auto task = task_of(test_world(), graph, clusters);
      const auto all = all_of(task, method());
      EXPECT_EQ(std::ssize(all), graph.rows);
      const std::set used(all.begin(), all.end());
      EXPECT_EQ(std::ssize(used), *used.rbegin() + 1) << "without a gap";
      EXPECT_LE(std::ssize(used), clusters);
      if (std::string(method()) != "multilevel")
        EXPECT_EQ(std::ssize(used), clusters) << method() << " " << graph.rows;
    }
}

TEST_P(EveryMethod, MakesTheSameOnAnyRanks) {
  const auto alone = test_world().split(test_world().rank(), 0);
  for (const auto& graph : {communities(6), random_graph<std::int64_t>(90, 3, false, 8)})
    for (const std::uint64_t seed : {1, 2}) {
      const auto together = all_of(task_of(test_world(), graph, 12, seed), method());
      if (test_world().rank() == 0) EXPECT_EQ(together, all_of(task_of(alone, graph, 12, seed), method()));
    }
}

TEST_P(EveryMethod, WeightsAddUp) {
  const auto graph = communities(5);
  const auto task = task_of(test_world(), graph, 9);
  const auto mine = partition_method(method()).clusters(task);
  const auto weights = weights_of_clusters(task, mine);
  const auto all = test_world().all_gather_v(std::span<const std::uint16_t>(mine), "test");
  ASSERT_EQ(std::ssize(weights), 9);
  std::vector<ClusterWeights> counted(9, ClusterWeights{});
  for (std::int64_t v = 0; v < graph.rows; ++v) {
    const auto one = weights_of(graph, v);
    for (std::size_t k = 0; k < one.size(); ++k) counted[all[v]][k] += one[k];
  }
  EXPECT_EQ(weights, counted);
}

// Of a directed graph with loops, what the pattern counts is an edge in either direction.
TEST_P(EveryMethod, SeesTheSymmetricPattern) {
  if (method() == std::string("streaming")) return;  // it takes rows as they stand
  const auto directed = random_graph<std::int64_t>(80, 3, false, 4);
  std::set<std::pair<std::int64_t, std::int64_t>> edges;
  for (std::int64_t v = 0; v < directed.rows; ++v)
    for (const auto u : directed.row_indices(v))
      if (u != v) edges.insert({v, u}), edges.insert({u, v});
  const auto symmetric = of_edges(directed.rows, edges);
  auto task = task_of(test_world(), symmetric, 8);
  task.weights = task_of(test_world(), directed, 8).weights;
  EXPECT_EQ(all_of(task_of(test_world(), directed, 8), method()), all_of(task, method()));
}

std::vector<const VertexPartitionMethod*> methods_here() {
  std::vector<const VertexPartitionMethod*> methods;
  for (const auto& method : partition_methods())
    if (!method.by_cut &&
        (has_metis() || !std::set<std::string>{"metis", "multilevel"}.contains(method.name)))
      methods.push_back(&method);
  return methods;
}

INSTANTIATE_TEST_SUITE_P(OrderMethods, EveryMethod, testing::ValuesIn(methods_here()),
                         [](const auto& method) { return std::string(method.param->name); });

double cut_of(const Graph& graph, const std::string& method, int clusters, int parts) {
  const auto task = task_of(test_world(), graph, clusters);
  const auto mine = method == "random" ? random_clusters(task) : partition_method(method).clusters(task);
  const std::vector<int> counts = {parts};
  return quality_of(task, mine, weights_of_clusters(task, mine), counts)[0].cut;
}

TEST(OrderMethods, MetisFindsCommunities) {
  if (!has_metis()) GTEST_SKIP() << "built without METIS";
  const auto graph = communities(16);
  EXPECT_LT(cut_of(graph, "metis", 64, 8), 0.1);
  EXPECT_LT(cut_of(graph, "metis", 64, 2), 0.03);
  EXPECT_GT(cut_of(graph, "random", 64, 8), 0.8);
}

// Two types of as many vertices, each a community: the best cut has one on each side.
Graph communities_of_types() {
  constexpr std::int64_t kOfType = 480;
  std::set<std::pair<std::int64_t, std::int64_t>> edges;
  const auto join = [&](std::int64_t u, std::int64_t v) {
    edges.insert({u, v});
    edges.insert({v, u});
  };
  for (std::int64_t v = 0; v < 2 * kOfType; ++v) {
    const auto first = v / kOfType * kOfType;
    for (std::int64_t k = 0; k < 5; ++k) {
      const auto u = first + static_cast<std::int64_t>(mix(static_cast<std::uint64_t>(64 * v + k)) % kOfType);
      if (u != v) join(u, v);
    }
    if (v % 10 == 0) join(v, (v + kOfType + 1) % (2 * kOfType));
  }
  return of_edges(2 * kOfType, edges);
}

TEST(OrderMethods, MetisBalancesEachType) {
  if (!has_metis()) GTEST_SKIP() << "built without METIS";
  const auto graph = communities_of_types();
  const auto worst = [&](bool balanced) {
    auto task = task_of(test_world(), graph, 64, 3);
    if (balanced) task.type_ends = {480, 960};
    VertexPartitionInfo order;
    const auto mine = partition_method("metis").clusters(task);
    task.type_ends = {480, 960};
    order.weights = weights_of_clusters(task, mine);
    order.type_weights = type_weights_of_clusters(task, mine, order.clusters());
    std::int64_t vertices = 0, entries = 0;
    for (std::size_t k = 0; k < order.type_weights.size(); k += 2) {
      vertices += order.type_weights[k];
      entries += order.type_weights[k + 1];
    }
    EXPECT_EQ(vertices, graph.rows);
    EXPECT_EQ(entries, graph.entries());
    const std::vector<int> parts = {2, 4};
    std::array<double, 2> largest = {};
    for (const auto& quality : quality_of(task, mine, order, parts))
      for (std::size_t k = 0; k < 4; ++k)
        largest[k % 2] = std::max(largest[k % 2], quality.balances[kBalances + k]);
    return largest;
  };
  EXPECT_GT(worst(false)[0], 1.8);
  EXPECT_LE(worst(true)[0], 1.05);
  EXPECT_LE(worst(true)[1], 1.2);
}

// In a few buffers, of which each sees what the others before it hold.
TEST(OrderMethods, StreamingFindsMuchOfThem) {
  const auto graph = communities(16);
  auto task = task_of(test_world(), graph, 64);
  const std::vector<int> parts = {8};
  for (const std::int64_t entries : {1'000'000, 500}) {
    task.entries_per_buffer = entries;
    const auto mine = partition_method("streaming").clusters(task);
    const auto quality = quality_of(task, mine, weights_of_clusters(task, mine), parts)[0];
    EXPECT_LT(quality.cut, entries > 500 ? 0.5 : 0.82);  // at random: 7 of 8
    EXPECT_LT(quality.balances[0], 1.2);
  }
}

TEST(OrderMethods, TheSeedDecides) {
  const auto graph = communities(8);
  for (const auto* method : methods_here())
    if (method->uses_seed)
      EXPECT_NE(all_of(task_of(test_world(), graph, 16, 3), method->name),
                all_of(task_of(test_world(), graph, 16, 5), method->name))
          << method->name;
}

TEST(OrderMethods, AreKnownByName) {
  EXPECT_THROW(partition_method("metiss"), UserError);
  expect_refused(ExitCode::kUsage, {"did you mean block?"}, [] { partition_method("blok"); });
  EXPECT_EQ(partition_method("block").name, std::string("block"));
  for (const char* removed : {"bfs", "degree", "random"})
    expect_refused(ExitCode::kUsage, {"bench/partition/orders.py"}, [&] { partition_method(removed); });
}

TEST(OrderMethods, MetisIsAskedOnlyForWhatItCanNumber) {
  constexpr std::int64_t kLimit = std::int64_t{1} << 31;
  EXPECT_TRUE(fits_metis(1000, kLimit - 2));
  EXPECT_FALSE(fits_metis(1000, kLimit - 1));
  EXPECT_FALSE(fits_metis(kLimit, 0));
  if (has_metis()) EXPECT_EQ(default_order_method(1000, 5000), "metis");
  EXPECT_NE(default_order_method(1000, kLimit), "metis");
  if (!has_metis()) return;
  const auto graph = communities(4);
  auto task = task_of(test_world(), graph, 4);
  task.edges = kLimit;
  expect_refused(ExitCode::kInput, {"--method streaming"}, [&] { partition_method("metis").clusters(task); });
}

// Who wants a vertex: the parts with a row that reads it, and its own.
TEST(OrderQuality, IsThatOfAPlainCount) {
  for (const std::uint64_t seed : {9, 10, 11}) {
    const auto graph = random_graph<std::int64_t>(120, 4, false, seed);
    auto task = task_of(test_world(), graph, 10);
    task.edges += 77;  // of a typed graph, entries that several relations have are read once
    const auto mine = random_clusters(task);
    const auto all = test_world().all_gather_v(std::span<const std::uint16_t>(mine), "test");
    const auto weights = weights_of_clusters(task, mine);
    const std::vector<int> parts = {2, 3, 10};
    const auto found = quality_of(task, mine, weights, parts);
    ASSERT_EQ(found.size(), parts.size());
    for (std::size_t k = 0; k < parts.size(); ++k) {
      const auto cuts = cut_order(weights, parts[k]);
      std::int64_t cut = 0, edges = 0;
      std::set<std::pair<std::int64_t, int>> wanted;
      for (std::int64_t v = 0; v < graph.rows; ++v) {
        const int own = cuts.owner(all[v]);
        wanted.insert({v, own});
        for (const auto u : graph.row_indices(v)) {
          wanted.insert({u, own});
          edges += u != v;
          cut += cuts.owner(all[u]) != own;
        }
      }
      EXPECT_EQ(found[k].parts, parts[k]);
      EXPECT_DOUBLE_EQ(found[k].cut, static_cast<double>(cut) / static_cast<double>(edges));
      EXPECT_DOUBLE_EQ(found[k].replication, static_cast<double>(wanted.size()) / 120.0);
      EXPECT_EQ(found[k].balances, balances_of(weights, cuts));
    }
  }
  EXPECT_EQ(shown_parts(10), (std::vector<int>{2, 4, 8}));
  EXPECT_EQ(shown_parts(1), std::vector<int>{});
}

}  // namespace
}  // namespace espalier
