#include "classes.inl.hpp"

#include "espalier/partition/owned_reader.hpp"

namespace espalier {

namespace {

constexpr MetricKind kClassMetrics[] = {{"accuracy", "accuracy"}, {"macro_f1", "macro-F1"}};

// A label of each vertex that a rank evaluates.
double judged_bytes(const TaskSize& size) {
  return 4.0 * static_cast<double>(size.graph.nodes) / size.ranks;
}

std::unique_ptr<Targets> read_class_targets(const Grid& grid, const GraphFile& file, const Ownership& blocks,
                                            const Config&, const BatchGroups*) {
  auto targets = std::make_unique<ClassTargets>();
  read_splits(grid, file, blocks, *targets);
  targets->outputs = file.info().classes;
  targets->evaluated_labels = OwnedReader(grid, file, blocks).labels();
  targets->train_labels =
      gather_split(grid, *targets, Split::kTrain, targets->train, targets->evaluated_labels, 1);
  return targets;
}

}  // namespace

constinit const TaskKind kClassesKind = {
    .name = "classes",
    .several_labels = false,
    .metrics = kClassMetrics,
    .noun = "class",
    .example = "vertex",
    .outputs = count_classes,
    .splits = count_vertices,
    .read_examples = read_training_vertices,
    .read_targets = read_class_targets,
    .label_bytes = [](const TaskSize& size) { return example_bytes(size, 4) + judged_bytes(size); },
    // Three counts of each class, of three splits.
    .evaluating = [](const TaskSize& size,
                     int) { return all_reduce_cost(72 * size.graph.classes, size.ranks); }};

std::vector<double> balanced_weights(std::span<const std::int32_t> labels, std::int64_t classes) {
  std::vector<double> counts(static_cast<std::size_t>(classes), 0.0);
  for (const auto label : labels) ++counts[label];
  const auto present = static_cast<double>(classes - std::ranges::count(counts, 0.0));
  for (double& count : counts)
    if (count > 0) count = static_cast<double>(labels.size()) / (present * count);
  return counts;
}

}  // namespace espalier
