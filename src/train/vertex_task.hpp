// What tasks have in common whose training examples are vertices with a label index beside each.
#pragma once

#include <optional>

#include "espalier/train/task.hpp"

namespace espalier {

template <class Space>
class VertexTaskOn : public TaskOn<Space> {
 public:
  /// `label_indices`: one beside each training vertex of `targets`.
  VertexTaskOn(const Grid& grid, const Targets& targets, std::span<const std::int32_t> label_indices)
      : grid_(grid),
        vertices_(targets),
        label_indices_(label_indices),
        examples_({targets.train, label_indices}) {}

  std::int64_t outputs() const override { return vertices_.outputs; }

  const ExampleSource& examples() const override { return examples_; }

  // Batches of a population have their share of all weight on average, and are divided by that: a
  // step is then unbiased, whichever examples it met (lambda of Zeng et al. 2020, section 3.2).
  double weight(const EpochPlan& plan, std::int64_t begin, std::int64_t end) const override {
    const auto& examples = plan.examples();
    if (const auto population = examples.population(); population > 0) {
      if (!weight_of_all_) weight_of_all_ = add_weights(0, label_indices_);
      return *weight_of_all_ * static_cast<double>(examples.count_seeds(begin, end)) /
             static_cast<double>(population);
    }
    double sum = 0;
    for (auto k = begin; k < end; ++k) {
      const auto batch = examples.batch(k);
      sum = add_weights(sum, batch.label_indices());
    }
    return sum;
  }

 protected:
  /// `sum` and the weights of examples of these label_indices, added one after another.
  virtual double add_weights(double sum, std::span<const std::int32_t> label_indices) const = 0;
  const Communicator& world() const { return grid_.world(); }

 private:
  const Grid& grid_;
  const Targets& vertices_;
  std::span<const std::int32_t> label_indices_;
  VertexSource examples_;
  mutable std::optional<double> weight_of_all_;  ///< once asked for: every step does
};

// What tasks of labelled vertices are alike in (TaskKind).
inline std::int64_t count_classes(const GraphInfo& graph, const Config&) {
  return graph.classes;
}
inline std::array<std::int64_t, 3> count_vertices(const GraphInfo& graph) {
  return {graph.train, graph.valid, graph.test};
}
inline std::unique_ptr<ExampleSource> read_training_vertices(const Communicator&, const GraphFile& file,
                                                             const Config&, const BatchGroups*) {
  return std::make_unique<VertexSource>(file.read_split(Split::kTrain));
}

/// Bytes of the training vertices on a rank, of the places of those that it evaluates, and of an
/// epoch's shuffle, with so many bytes of label index beside each training vertex.
inline double example_bytes(const TaskSize& size, double index_bytes) {
  const auto& graph = size.graph;
  // And shuffled.
  const double training = 2 * (8.0 + index_bytes) * static_cast<double>(graph.train);
  return training + 8.0 * static_cast<double>(graph.train + graph.valid + graph.test) / size.ranks;
}

}  // namespace espalier
