#include "level_graph.hpp"

#include <limits>

#include "espalier/base/id_map.hpp"
#include "espalier/comm/agree.hpp"

namespace espalier {

namespace {

// The ids outside of `mine` that the rows name, ascending.
Buffer<std::int64_t> find_ghosts(const Buffer<std::int64_t>& indices, RowRange mine) {
  Buffer<std::int64_t> ghosts;
  for (const auto id : indices)
    if (id < mine.begin || id >= mine.end) {
      ghosts.push_back(id);
      if (ghosts.size() == ghosts.capacity()) {  // before it grows: most are repeated
        std::sort(ghosts.begin(), ghosts.end());
        ghosts.erase(std::unique(ghosts.begin(), ghosts.end()), ghosts.end());
        ghosts.reserve(2 * ghosts.size() + 1024);
      }
    }
  std::sort(ghosts.begin(), ghosts.end());
  ghosts.erase(std::unique(ghosts.begin(), ghosts.end()), ghosts.end());
  ghosts.shrink_to_fit();
  return ghosts;
}

Buffer<std::int32_t> places_of(const LevelGraph& graph, const Buffer<std::int64_t>& indices) {
  IdMap ghost_number(static_cast<std::int64_t>(graph.ghosts.size()));
  for (const auto id : graph.ghosts) ghost_number.insert(id);
  Buffer<std::int32_t> places(indices.size());
  for (std::size_t e = 0; e < indices.size(); ++e) {
    const auto id = indices[e];
    const bool here = id >= graph.mine.begin && id < graph.mine.end;
    places[e] = static_cast<std::int32_t>(here ? id - graph.mine.begin : graph.own() + ghost_number.find(id));
  }
  return places;
}

}  // namespace

LevelGraph make_level_graph(const Communicator& comm, Csr<std::int64_t> rows, Buffer<std::int64_t> weights,
                            Buffer<ClusterWeights> vertex_weights) {
  LevelGraph graph;
  graph.nodes = rows.columns;
  graph.mine = even_range(graph.nodes, comm.size(), comm.rank());
  ESPALIER_CHECK(rows.rows == graph.own(), "{} rows, not {}", rows.rows, graph.own());
  ESPALIER_CHECK(static_cast<std::int64_t>(vertex_weights.size()) == graph.own(), "{} weights",
                 vertex_weights.size());
  graph.ghosts = find_ghosts(rows.indices, graph.mine);
  agree(comm, [&] {
    if (graph.places() > std::numeric_limits<std::int32_t>::max())
      memory_error("a rank has {} vertices and neighbours; use more ranks", graph.places());
  });
  graph.ghost_route = IdRoute(comm, graph.nodes, graph.ghosts, "partition");
  graph.neighbours = places_of(graph, rows.indices);
  graph.indptr = std::move(rows.indptr);
  graph.weights = std::move(weights);
  graph.vertex_weights = std::move(vertex_weights);
  return graph;
}

ClusterWeights total_weights(const Communicator& comm, const LevelGraph& graph) {
  ClusterWeights total{};
  for (const auto& weight : graph.vertex_weights) total += weight;
  comm.all_reduce(std::span<std::int64_t>(total), Reduction::kSum, "partition");
  return total;
}

std::int64_t total_edge_weight(const Communicator& comm, const LevelGraph& graph) {
  const auto mine = graph.weights.empty()
                        ? static_cast<std::int64_t>(graph.neighbours.size())
                        : std::accumulate(graph.weights.begin(), graph.weights.end(), std::int64_t{0});
  return comm.all_reduce(mine, Reduction::kSum, "partition");
}

}  // namespace espalier
