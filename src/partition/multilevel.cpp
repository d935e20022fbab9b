#include "multilevel.hpp"

#include <algorithm>
#include <utility>

#include "espalier/base/error.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/partition/partition_methods.hpp"
#include "level_graph.hpp"
#include "partition_pattern.hpp"

namespace espalier {

namespace {

// A level and where its vertices went on the next.
struct Level {
  LevelGraph graph;
  Buffer<std::int64_t> parent;  // [own] empty: this is the coarsest
};

// The most that a vertex of the next level may weigh: some eight vertices of this one, but no more
// than fits well into what the coarsest shall have.
ClusterWeights cluster_limit(const ClusterWeights& total, std::int64_t nodes, std::int64_t coarsest) {
  constexpr ClusterWeights kTimesMean = {2, 4, 3, 3, 3};
  const auto aim = std::max(nodes / 8, coarsest);
  ClusterWeights limit{};
  for (std::size_t kind = 0; kind < limit.size(); ++kind)
    limit[kind] = std::max<std::int64_t>(kTimesMean[kind] * total[kind] / aim, 2);
  return limit;
}

// What vertices have from those of a coarser level that they went to; values: of my own of those.
template <class T>
Buffer<T> inherit(const Communicator& comm, const Buffer<std::int64_t>& parent, std::int64_t coarse_nodes,
                  const Buffer<T>& values) {
  const auto parents = distinct(parent);
  Buffer<T> of_parents(parents.size());
  IdRoute(comm, coarse_nodes, parents, "partition").pull(comm, values.data(), of_parents.data(), "partition");
  return look_up(parent, parents, of_parents);
}

std::int64_t count_entries(const Communicator& comm, const LevelGraph& graph) {
  return comm.all_reduce(graph.indptr[graph.own()], Reduction::kSum, "partition");
}

// Without structure that coarsening would find a level has nearly all edges of the one before.
// Then that one goes, unless it is the finest: it would cost memory and time and win little.
void drop_if_alike(const Communicator& comm, std::vector<Level>& levels) {
  const auto last = levels.size() - 1;
  if (last < 2) return;
  auto& dropped = levels[last - 1];
  if (10 * count_entries(comm, levels[last].graph) < 9 * count_entries(comm, dropped.graph)) return;
  auto& finer = levels[last - 2];
  finer.parent = inherit(comm, finer.parent, dropped.graph.nodes, dropped.parent);
  levels.erase(levels.end() - 2);
}

std::vector<Level> coarsen(const Communicator& comm, LevelGraph finest, const MultilevelOptions& options) {
  const auto total = total_weights(comm, finest);
  std::vector<Level> levels;
  levels.push_back({std::move(finest), {}});
  while (levels.back().graph.nodes > options.coarsest) {
    auto& level = levels.back();
    const auto nodes = level.graph.nodes;
    const ClusteringOptions clustering{cluster_limit(total, nodes, options.coarsest),
                                       absorb(options.seed, static_cast<std::int64_t>(levels.size())), 8};
    auto next = contract(comm, level.graph, cluster_vertices(comm, level.graph, clustering));
    if (next.coarse.nodes > nodes - nodes / 20) break;  // it would not end
    level.parent = std::move(next.parent);
    levels.push_back({std::move(next.coarse), {}});
    drop_if_alike(comm, levels);
  }
  return levels;
}

// Clusters in place of codes, without those that are empty.
std::vector<std::uint16_t> number_clusters(const Communicator& comm, const ClusterTree& tree,
                                           const Buffer<std::uint16_t>& codes) {
  std::vector<std::int32_t> number(static_cast<std::size_t>(tree.clusters()), 0);
  for (const auto code : codes) number[tree.cluster(code)] = 1;
  comm.all_reduce(std::span<std::int32_t>(number), Reduction::kMax, "partition");
  std::int32_t next = 0;
  for (auto& cluster : number) cluster = cluster == 0 ? -1 : next++;
  std::vector<std::uint16_t> clusters;
  for (const auto code : codes) clusters.push_back(static_cast<std::uint16_t>(number[tree.cluster(code)]));
  return clusters;
}

}  // namespace

std::vector<std::uint16_t> cluster_by_multilevel(const Communicator& comm, Csr<std::int64_t> rows,
                                                 Buffer<ClusterWeights> weights,
                                                 const MultilevelOptions& options) {
  if (!has_metis())
    usage_error(
        "--method multilevel: this program was built without METIS, which cuts the coarsest graph; install "
        "it "
        "(Debian: libmetis-dev) and build the program again, or use --method streaming");
  const ClusterTree tree(options.clusters);
  auto levels = coarsen(comm, make_level_graph(comm, std::move(rows), std::move(weights)), options);
  auto codes = partition_coarsest(comm, levels.back().graph, tree, options.seed);
  for (;;) {
    const auto& graph = levels.back().graph;
    const RefinementOptions refinement{part_limits(comm, graph, tree),
                                       absorb(options.seed, -std::ssize(levels) - 1), options.rounds};
    refine_clusters(comm, graph, tree, refinement, codes);
    if (levels.size() == 1) return number_clusters(comm, tree, codes);
    const auto coarse_nodes = graph.nodes;
    levels.pop_back();
    codes = inherit(comm, levels.back().parent, coarse_nodes, codes);
  }
}

Buffer<std::uint16_t> partition_by_multilevel(const VertexPartitionTask& task) {
  Buffer<ClusterWeights> weights(task.weights.begin(), task.weights.end());
  const auto clusters = cluster_by_multilevel(task.world, symmetric_rows(task), std::move(weights),
                                              {.clusters = task.clusters, .seed = task.seed});
  return {clusters.begin(), clusters.end()};
}

}  // namespace espalier
