// The combinations of sampler and matrix that GraphSAGE's tests go through.
#pragma once

#include "espalier/sample/sampler.hpp"
#include "random_graph.hpp"

namespace espalier {

constexpr std::int64_t kNodes = 157;  // divides by nothing

inline Buffer<std::int64_t> training_vertices() {
  Buffer<std::int64_t> ids;
  for (std::int64_t v = 0; v < kNodes; v += 2) ids.push_back(v);
  return ids;
}

struct Case {
  SamplerShape shape;
  bool weighted_graph;
};

inline std::vector<Case> cases() {
  return {{{.fanout = {4, 3, 2}}, false},
          {{.fanout = {4, -1}}, true},
          {{.fanout = {3, 3}, .weighted = true}, true},
          {{.fanout = {3, 3}, .aggregation = Aggregation::kMatrix}, false},
          {{.fanout = {2, 2}, .weighted = true, .aggregation = Aggregation::kMatrix}, true}};
}

template <class Index>
DistCsr<Index> matrix_of(const Grid& grid, const Case& c, Topology topology) {
  auto a = distribute(grid, random_graph<Index>(kNodes, 9, c.weighted_graph, 11), topology);
  return c.shape.aggregation == Aggregation::kMatrix ? normalize_with_self_loops(a) : a;
}

}  // namespace espalier
