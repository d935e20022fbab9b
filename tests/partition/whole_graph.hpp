// Small symmetric graphs that every rank knows whole, for tests of what works on rows of them.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "../../src/partition/level_graph.hpp"
#include "espalier/base/philox.hpp"

namespace espalier {

struct WholeGraph {
  std::int64_t nodes = 0;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> entries;  ///< (row, column): weight
  std::vector<ClusterWeights> vertex_weights;

  void join(std::int64_t u, std::int64_t v, std::int64_t weight = 1) {
    if (u == v) return;
    entries[{u, v}] += weight;
    entries[{v, u}] += weight;
  }
  std::int64_t weight() const {
    std::int64_t sum = 0;
    for (const auto& [place, weight] : entries) sum += weight;
    return sum;
  }
};

/// Vertices that count 1, their degree, and nine of ten also 1 for one of the splits: by a draw, or
/// every run of `period` vertices like its neighbour.
inline void weigh_vertices(WholeGraph& graph, std::int64_t period = 0) {
  graph.vertex_weights.assign(static_cast<std::size_t>(graph.nodes), ClusterWeights{1, 0, 0, 0, 0});
  for (const auto& [place, weight] : graph.entries) ++graph.vertex_weights[place.first][1];
  for (std::int64_t v = 0; v < graph.nodes; ++v) {
    const auto row = static_cast<std::uint64_t>(v);
    const auto draw = period > 0 ? static_cast<std::uint64_t>(v / period % 10)
                                 : random_below({.seed = 5, .row = row}, 0, 10);
    if (draw < 9) ++graph.vertex_weights[v][draw < 5 ? 2 : draw < 7 ? 3 : 4];
  }
}

/// `edges` drawn with vertices of low number oftener (a hub is among them), weights 1 .. most.
inline WholeGraph skewed_graph(std::int64_t nodes, std::int64_t edges, std::int64_t most,
                               std::uint64_t seed) {
  WholeGraph graph;
  graph.nodes = nodes;
  for (std::int64_t e = 0; e < edges; ++e) {
    const RandomStream stream = {.seed = seed, .row = static_cast<std::uint64_t>(e)};
    const auto n = static_cast<std::uint64_t>(nodes);
    const auto u = random_below(stream, 0, 1 + random_below(stream, 1, 1 + random_below(stream, 2, n)));
    graph.join(static_cast<std::int64_t>(u), static_cast<std::int64_t>(random_below(stream, 3, n)),
               1 + static_cast<std::int64_t>(random_below(stream, 4, static_cast<std::uint64_t>(most))));
  }
  weigh_vertices(graph);
  return graph;
}

/// Blocks of so many vertices; vertex v is in block v % blocks. A vertex has `inside` edges to its
/// own block, one of ten vertices also one to any. All blocks have as much of every split.
inline WholeGraph planted_blocks(int blocks, std::int64_t size, int inside, std::uint64_t seed) {
  WholeGraph graph;
  graph.nodes = blocks * size;
  for (std::int64_t v = 0; v < graph.nodes; ++v) {
    const RandomStream stream = {.seed = seed, .row = static_cast<std::uint64_t>(v)};
    for (int k = 0; k < inside; ++k)
      graph.join(v, v % blocks + blocks * static_cast<std::int64_t>(
                                              random_below(stream, static_cast<std::uint64_t>(k + 1),
                                                           static_cast<std::uint64_t>(size))));
    if (random_below(stream, 0, 10) == 0)
      graph.join(
          v, static_cast<std::int64_t>(random_below(stream, 100, static_cast<std::uint64_t>(graph.nodes))));
  }
  for (auto& entry : graph.entries) entry.second = 1;
  weigh_vertices(graph, blocks);
  return graph;
}

/// My rows, and the weights of their entries in their order.
inline std::pair<Csr<std::int64_t>, Buffer<std::int64_t>> rows_of(const Communicator& comm,
                                                                  const WholeGraph& graph) {
  const auto mine = even_range(graph.nodes, comm.size(), comm.rank());
  Csr<std::int64_t> rows{mine.size(), graph.nodes, {}, {}, {}};
  rows.indptr.assign(static_cast<std::size_t>(mine.size()) + 1, 0);
  Buffer<std::int64_t> weights;
  for (auto at = graph.entries.lower_bound({mine.begin, 0}); at != graph.entries.end(); ++at) {
    if (at->first.first >= mine.end) break;
    ++rows.indptr[at->first.first - mine.begin + 1];
    rows.indices.push_back(at->first.second);
    weights.push_back(at->second);
  }
  for (std::int64_t row = 0; row < rows.rows; ++row) rows.indptr[row + 1] += rows.indptr[row];
  return {std::move(rows), std::move(weights)};
}

inline Buffer<ClusterWeights> weights_of(const Communicator& comm, const WholeGraph& graph) {
  const auto mine = even_range(graph.nodes, comm.size(), comm.rank());
  return {graph.vertex_weights.begin() + mine.begin, graph.vertex_weights.begin() + mine.end};
}

inline LevelGraph level_of(const Communicator& comm, const WholeGraph& graph) {
  const auto [rows, weights] = rows_of(comm, graph);
  LevelBuilder builder(comm, graph.nodes, EdgeWeights(graph.weight()), 0);
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    for (auto e = rows.row_begin(row); e < rows.row_end(row); ++e) builder.add(rows.indices[e], weights[e]);
    builder.end_row();
  }
  return builder.finish(comm, weights_of(comm, graph));
}

/// What all ranks have, in their order.
template <class List, class T = typename List::value_type>
std::vector<T> all_of(const Communicator& comm, const List& mine) {
  const auto all = comm.all_gather_v(std::span<const T>(mine), "test");
  return {all.begin(), all.end()};
}

/// A level as every rank sees all of it.
inline WholeGraph whole_of(const Communicator& comm, const LevelGraph& level) {
  struct Entry {
    std::int64_t row, column, weight;
  };
  Buffer<Entry> mine;
  for (std::int64_t v = 0; v < level.own(); ++v)
    for (auto e = level.indptr[v]; e < level.indptr[v + 1]; ++e)
      mine.push_back({level.id(v), level.id(level.neighbours[e]), level.weights[e]});
  WholeGraph graph;
  graph.nodes = level.nodes;
  for (const auto& entry : comm.all_gather_v(std::span<const Entry>(mine), "test"))
    graph.entries[{entry.row, entry.column}] += entry.weight;
  const auto weights = comm.all_gather_v(std::span<const ClusterWeights>(level.vertex_weights), "test");
  graph.vertex_weights.assign(weights.begin(), weights.end());
  return graph;
}

}  // namespace espalier
