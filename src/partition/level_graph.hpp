// One level of the multilevel method: a symmetric graph without loops whose edges and vertices have
// integer weights, its rows spread over the ranks by even ranges of the ids. A rank also knows the
// ids of the neighbours that others own, its ghosts.
//
// In the rows a neighbour is a *place*: v - mine.begin of an own vertex, own() + k of ghost k. So
// what a round of work reads of a neighbour, a label or a cluster, is one array over the places.
#pragma once

#include <cstdint>
#include <numeric>
#include <span>
#include <string_view>

#include "espalier/partition/order.hpp"
#include "espalier/sparse/csr.hpp"
#include "id_route.hpp"

namespace espalier {

struct LevelGraph {
  std::int64_t nodes = 0;
  RowRange mine;                          ///< even_range(nodes, ranks, rank)
  Buffer<std::int64_t> indptr;            ///< [own + 1]
  Buffer<std::int32_t> neighbours;        ///< [entries] places
  Buffer<std::int64_t> weights;           ///< [entries] of edges, > 0; or empty: all 1
  Buffer<ClusterWeights> vertex_weights;  ///< [own]
  Buffer<std::int64_t> ghosts;            ///< ids, ascending
  IdRoute ghost_route;
  std::int64_t inside = 0;  ///< weight that the edges of all ranks lost by becoming loops, each
                            ///< edge in both directions

  std::int64_t own() const { return mine.size(); }
  std::int64_t places() const { return own() + static_cast<std::int64_t>(ghosts.size()); }
  std::int64_t id(std::int64_t place) const {
    return place < own() ? mine.begin + place : ghosts[place - own()];
  }
  std::int64_t edge_weight(std::int64_t entry) const { return weights.empty() ? 1 : weights[entry]; }

  /// Collective. The values of ghosts, from their owners; values: [places], those of own vertices
  /// are there.
  template <class T>
  void fill_ghosts(const Communicator& comm, Buffer<T>& values, std::string_view label) const {
    ghost_route.pull(comm, values.data(), values.data() + own(), label);
  }
};

/// Collective. The level whose rows are `rows` [mine, nodes]: global ids, ascending, without loops,
/// symmetric over all ranks. `weights`: of their entries, or empty. Each rank has fewer than 2^31
/// places, else UserError(kMemory) on every rank.
LevelGraph make_level_graph(const Communicator& comm, Csr<std::int64_t> rows, Buffer<std::int64_t> weights,
                            Buffer<ClusterWeights> vertex_weights);

/// Collective. The sum over all vertices.
ClusterWeights total_weights(const Communicator& comm, const LevelGraph& graph);

/// Collective. The weight of all entries: every edge twice. With graph.inside it is the same on
/// all levels.
std::int64_t total_edge_weight(const Communicator& comm, const LevelGraph& graph);

inline ClusterWeights& operator+=(ClusterWeights& sum, const ClusterWeights& more) {
  for (std::size_t kind = 0; kind < sum.size(); ++kind) sum[kind] += more[kind];
  return sum;
}
inline ClusterWeights& operator-=(ClusterWeights& sum, const ClusterWeights& less) {
  for (std::size_t kind = 0; kind < sum.size(); ++kind) sum[kind] -= less[kind];
  return sum;
}
/// Is load + more within the limit, in every kind that there is more of?
inline bool fits(const ClusterWeights& load, const ClusterWeights& more, const ClusterWeights& limit) {
  for (std::size_t kind = 0; kind < load.size(); ++kind)
    if (more[kind] > 0 && load[kind] + more[kind] > limit[kind]) return false;
  return true;
}

}  // namespace espalier
