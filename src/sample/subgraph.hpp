// Uniform-vertex subgraphs (the node sampler of GraphSAINT, Zeng et al. 2020, with equal
// probabilities; ScaleGNN trains so), for every space.
//
// The batches of an epoch are random sets of all n vertices (VertexSource), which every rank
// knows without a message; nothing is drawn here. A batch of b vertices has the blocks of the
// subgraph that it induces, the same for each layer. A vertex that is in the batch meets any other
// with probability (b - 1) / (n - 1), and itself always, so that
//
//     B_vu = M_vu (n - 1) / (b - 1)   for u != v,      B_vv = M_vv
//
// is M on average, given v (the aggregator normalisation of section 3.2 there, in closed form). The
// loss is divided by the examples that a batch has on average (train/vertex_task.hpp).
#pragma once

#include <algorithm>

#include "layer_wise.hpp"

namespace espalier {

/// Appends the columns of these ascending vertices in a relation. columns_of: the host's.
template <class Index>
void add_columns(const ColumnsOf& columns_of, int relation, std::span<const std::int64_t> vertices,
                 std::vector<Index>& columns) {
  if (columns_of.begins == nullptr) {
    for (const auto v : vertices) columns.push_back(static_cast<Index>(v));
    return;
  }
  const auto shift = columns_of.shifts[relation];
  const auto first = std::ranges::lower_bound(vertices, columns_of.begins[relation] + shift);
  const auto last = std::ranges::lower_bound(vertices, columns_of.begins[relation + 1] + shift);
  for (auto v = first; v != last; ++v) columns.push_back(static_cast<Index>(*v - shift));
}

template <class Index, class Space>
class InducedSubgraph final : public LayerDistribution<Index, Space> {
 public:
  explicit InducedSubgraph(const DistCsr<Index, Space>& m) : m_(m) {}

  // The columns of a batch's own vertices, in each relation.
  LayerPicks<Index, Space> pick(const Space& space, Product<Index, Space>&,
                                const LayerInputOn<Space>& input) override {
    const auto& frontier = input.frontier;
    auto vertices = copy_from(space, frontier.vertices);
    const auto columns_of = m_.on_host().columns.view();
    std::vector<Index> columns;
    std::vector<double> factors;
    std::vector<std::int64_t> offsets = {0};
    for (std::int64_t b = 0; b < frontier.batches(); ++b) {
      const std::span<std::int64_t> batch(vertices.data() + frontier.begin(b),
                                          static_cast<std::size_t>(frontier.size(b)));
      std::ranges::sort(batch);
      for (int relation = 0; relation < columns_of.relations; ++relation)
        add_columns<Index>(columns_of, relation, batch, columns);
      const double others = static_cast<double>(std::ssize(batch) - 1);
      factors.resize(columns.size(), static_cast<double>(m_.rows() - 1) / std::max(others, 1.0));
      offsets.push_back(std::ssize(columns));
    }
    return {{space, std::move(offsets)},
            copy_to(space, std::span<const Index>(columns)),
            copy_to(space, std::span<const double>(factors)),
            true};
  }

 private:
  const DistCsr<Index, Space>& m_;
};

template <class Index>
std::unique_ptr<Sampler> make_subgraph(const Cpu&, const DistCsr<Index>& m, const SamplerShape& shape) {
  return make_layer_wise<Index, Cpu>("subgraph", m, shape, std::make_unique<InducedSubgraph<Index, Cpu>>(m));
}
template <class Index>
std::unique_ptr<SamplerOn<Cuda>> make_subgraph(const Cuda&, const DistCsr<Index, Cuda>& m,
                                               const SamplerShape& shape) {
  return make_layer_wise<Index, Cuda>("subgraph", m, shape,
                                      std::make_unique<InducedSubgraph<Index, Cuda>>(m));
}

}  // namespace espalier
