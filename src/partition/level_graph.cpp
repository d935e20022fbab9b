#include "level_graph.hpp"

#include <algorithm>
#include <utility>

#include "espalier/comm/communicator.hpp"

namespace espalier {

LevelBuilder::LevelBuilder(const Communicator& comm, std::int64_t nodes, EdgeWeights weights,
                           std::int64_t entries_expected)
    : ghost_number_(1024), ghost_room_(1024) {
  graph_.nodes = nodes;
  graph_.mine = even_range(nodes, comm.size(), comm.rank());
  graph_.weights = std::move(weights);
  graph_.indptr.reserve(static_cast<std::size_t>(graph_.own()) + 1);
  graph_.indptr.push_back(0);
  graph_.neighbours.reserve(static_cast<std::size_t>(entries_expected));
  graph_.weights.reserve(entries_expected);
}

// The place of a ghost while they are in the order in which they came.
std::int32_t LevelBuilder::ghost(std::int64_t id) {
  if (ghost_number_.size() == ghost_room_) {
    ghost_room_ *= 2;
    ghost_number_ = IdMap(ghost_room_);
    for (const auto known : graph_.ghosts) ghost_number_.insert(known);
  }
  const auto number = ghost_number_.insert(id);
  if (number == static_cast<std::int64_t>(graph_.ghosts.size())) graph_.ghosts.push_back(id);
  return static_cast<std::int32_t>(graph_.own() + number);  // checked in finish
}

// Ghosts by ascending id, and their places accordingly.
void LevelBuilder::sort_ghosts() {
  auto& ghosts = graph_.ghosts;
  std::sort(ghosts.begin(), ghosts.end());
  Buffer<std::int32_t> place(ghosts.size());
  for (std::size_t k = 0; k < ghosts.size(); ++k)
    place[ghost_number_.find(ghosts[k])] = static_cast<std::int32_t>(graph_.own() + k);
  for (auto& neighbour : graph_.neighbours)
    if (neighbour >= graph_.own()) neighbour = place[neighbour - graph_.own()];
}

LevelGraph LevelBuilder::finish(const Communicator& comm, Buffer<ClusterWeights> vertex_weights) {
  ESPALIER_CHECK(static_cast<std::int64_t>(graph_.indptr.size()) == graph_.own() + 1, "{} rows, not {}",
                 graph_.indptr.size() - 1, graph_.own());
  ESPALIER_CHECK(static_cast<std::int64_t>(vertex_weights.size()) == graph_.own(), "{} weights",
                 vertex_weights.size());
  agree(comm, [&] {
    if (graph_.places() > std::numeric_limits<std::int32_t>::max())
      memory_error("a rank has {} vertices and neighbours; use more ranks", graph_.places());
  });
  sort_ghosts();
  graph_.ghost_route = IdRoute(comm, graph_.nodes, graph_.ghosts, "partition");
  graph_.vertex_weights = std::move(vertex_weights);
  return std::move(graph_);
}

LevelGraph make_level_graph(const Communicator& comm, Csr<std::int64_t> rows,
                            Buffer<ClusterWeights> vertex_weights) {
  LevelBuilder builder(comm, rows.columns, {}, rows.entries());
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    for (const auto column : rows.row_indices(row)) builder.add(column, 1);
    builder.end_row();
  }
  rows = {};
  return builder.finish(comm, std::move(vertex_weights));
}

ClusterWeights total_weights(const Communicator& comm, const LevelGraph& graph) {
  ClusterWeights total{};
  for (const auto& weight : graph.vertex_weights) total += weight;
  comm.all_reduce(std::span<std::int64_t>(total), Reduction::kSum, "partition");
  return total;
}

std::int64_t total_edge_weight(const Communicator& comm, const LevelGraph& graph) {
  std::int64_t mine = 0;
  for (std::int64_t e = 0; e < graph.indptr[graph.own()]; ++e) mine += graph.weights[e];
  return comm.all_reduce(mine, Reduction::kSum, "partition");
}

}  // namespace espalier
