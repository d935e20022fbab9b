// What tasks have in common whose training examples are vertices with a tag beside each.
#pragma once

#include <utility>

#include "espalier/train/task.hpp"

namespace espalier {

template <class Space>
class VertexTaskOn : public TaskOn<Space> {
 public:
  /// `tags`: one beside each training vertex of `targets`.
  VertexTaskOn(const Grid& grid, const Targets& targets, std::span<const std::int32_t> tags)
      : grid_(grid), vertices_(targets), tags_(tags) {}

  std::int64_t outputs() const override { return vertices_.outputs; }

  EpochPlan plan_epoch(const EpochShape& shape) const override {
    return EpochPlan(vertices_.train, shape.batch_size, shape.batches_per_step, shape.ranks, shape.seed,
                     shape.epoch, tags_, shape.groups);
  }

 protected:
  const Communicator& world() const { return grid_.world(); }

 private:
  const Grid& grid_;
  const Targets& vertices_;
  std::span<const std::int32_t> tags_;
};

/// Bytes of the training vertices on a rank, of the places of those that it judges, and of an
/// epoch's shuffle, with so many bytes of tag beside each training vertex.
inline double example_bytes(const TaskSize& size, double tag) {
  const auto& graph = size.graph;
  const double training = 2 * (8.0 + tag) * static_cast<double>(graph.train);  // and shuffled
  return training + 8.0 * static_cast<double>(graph.train + graph.valid + graph.test) / size.ranks;
}

}  // namespace espalier
