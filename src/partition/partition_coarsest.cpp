#include "partition_coarsest.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "espalier/base/mix.hpp"
#include "espalier/comm/agree.hpp"
#include "metis_bisection.hpp"

namespace espalier {

namespace {

// The values of all ranks on rank 0, rank after rank; nothing on the others.
template <class T>
Buffer<T> gather(const Communicator& comm, const Buffer<T>& mine) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(comm.size()), 0);
  counts[0] = static_cast<std::int64_t>(mine.size());
  return comm.all_to_all_v(std::span<const T>(mine), counts, "partition").data;
}

SmallGraph gather_graph(const Communicator& comm, const LevelGraph& graph) {
  Buffer<std::int64_t> sizes(graph.own());
  for (std::int64_t v = 0; v < graph.own(); ++v) sizes[v] = graph.indptr[v + 1] - graph.indptr[v];
  Buffer<std::int32_t> ids(graph.neighbours.size());
  for (std::size_t e = 0; e < ids.size(); ++e)
    ids[e] = static_cast<std::int32_t>(graph.id(graph.neighbours[e]));
  auto weights = graph.weights;
  if (weights.empty()) weights.assign(ids.size(), 1);
  SmallGraph all;
  all.neighbours = gather(comm, ids);
  all.weights = gather(comm, weights);
  all.vertex_weights = gather(comm, graph.vertex_weights);
  for (const auto size : gather(comm, sizes)) all.indptr.push_back(all.indptr.back() + size);
  return all;
}

// Halves the vertices of a node of the tree, again and again.
class Halving {
 public:
  Halving(const SmallGraph& graph, const ClusterTree& tree, std::uint64_t seed)
      : graph_(graph), tree_(tree), seed_(seed), code_(graph.nodes(), 0), place_(graph.nodes(), -1) {}

  Buffer<std::uint16_t> run() {
    std::vector<std::int32_t> all(static_cast<std::size_t>(graph_.nodes()));
    for (std::size_t v = 0; v < all.size(); ++v) all[v] = static_cast<std::int32_t>(v);
    std::vector<std::vector<std::int32_t>> nodes = {std::move(all)};
    for (int depth = 0; depth < tree_.depth(); ++depth) {
      std::vector<std::vector<std::int32_t>> halves;
      for (const auto& vertices : nodes) halve(vertices, depth, halves);
      nodes = std::move(halves);
    }
    return std::move(code_);
  }

 private:
  // The graph between some of the vertices.
  SmallGraph between(const std::vector<std::int32_t>& vertices) {
    SmallGraph part;
    for (std::size_t k = 0; k < vertices.size(); ++k) place_[vertices[k]] = static_cast<std::int32_t>(k);
    for (const auto v : vertices) {
      for (auto e = graph_.indptr[v]; e < graph_.indptr[v + 1]; ++e) {
        const auto place = place_[graph_.neighbours[e]];
        if (place < 0) continue;
        part.neighbours.push_back(place);
        part.weights.push_back(graph_.weights[e]);
      }
      part.indptr.push_back(static_cast<std::int64_t>(part.neighbours.size()));
      part.vertex_weights.push_back(graph_.vertex_weights[v]);
    }
    for (const auto v : vertices) place_[v] = -1;
    return part;
  }

  // Tight where parts of few ranks are cut, looser below, where a vertex is much of a part.
  BisectionOptions options(int depth, int node) const {
    BisectionOptions asked;
    const double loose = 1 + 0.01 * std::exp2(0.5 * std::max(0, depth - 3));
    asked.tolerance = {loose, loose + 0.05, loose, loose + 0.01, loose + 0.01};
    const auto below = tree_.clusters_below(node);
    asked.first_share = static_cast<double>(below - below / 2) / below;
    asked.tries = depth < 4 ? 8 : 1;
    asked.seed = absorb(mix(seed_), node);
    return asked;
  }

  // For how much weight more vertices with `side` = 1 are connected with what lies before than
  // behind, and those with 0 the other way round.
  std::int64_t leaning(const std::vector<std::int32_t>& vertices,
                       const std::vector<std::uint8_t>& side) const {
    std::int64_t leaning = 0;
    for (std::size_t k = 0; k < vertices.size(); ++k) {
      const auto v = vertices[k];
      for (auto e = graph_.indptr[v]; e < graph_.indptr[v + 1]; ++e) {
        const auto other = code_[graph_.neighbours[e]];
        if (other == code_[v]) continue;
        leaning += (other < code_[v]) == (side[k] == 1) ? graph_.weights[e] : -graph_.weights[e];
      }
    }
    return leaning;
  }

  void halve(const std::vector<std::int32_t>& vertices, int depth,
             std::vector<std::vector<std::int32_t>>& halves) {
    std::vector<std::int32_t> half[2];
    const int node = vertices.empty() ? 1 : tree_.node(code_[vertices[0]], depth);
    const auto below = tree_.clusters_below(node);
    if (vertices.empty() || below < 2) {
      half[0] = vertices;
    } else {
      auto side = metis_bisect(between(vertices), options(depth, node));
      if (below % 2 == 0 && leaning(vertices, side) > 0)
        for (auto& of : side) of ^= 1;
      const auto bit = static_cast<std::uint16_t>(1 << (tree_.depth() - depth - 1));
      for (std::size_t k = 0; k < vertices.size(); ++k) half[side[k]].push_back(vertices[k]);
      for (const auto v : half[1]) code_[v] |= bit;
    }
    for (auto& vertices_of : half) halves.push_back(std::move(vertices_of));
  }

  const SmallGraph& graph_;
  const ClusterTree& tree_;
  std::uint64_t seed_;
  Buffer<std::uint16_t> code_;  // the way so far, zeros behind
  Buffer<std::int32_t> place_;  // in the graph that is halved, or -1
};

}  // namespace

Buffer<std::uint16_t> partition_coarsest(const Communicator& comm, const LevelGraph& graph,
                                         const ClusterTree& tree, std::uint64_t seed) {
  Buffer<std::uint16_t> code(static_cast<std::size_t>(graph.nodes), 0);
  const auto all = gather_graph(comm, graph);
  agree(comm, [&] {
    if (comm.rank() == 0) code = Halving(all, tree, seed).run();
  });
  comm.broadcast(std::span<std::uint16_t>(code), 0, "partition");
  return {code.begin() + graph.mine.begin, code.begin() + graph.mine.end};
}

}  // namespace espalier
