#include "classes.inl.hpp"

#include "espalier/nn/softmax_cross_entropy.hpp"
#include "espalier/nn/weighted_cross_entropy.hpp"
#include "espalier/partition/owned_reader.hpp"

namespace espalier {

namespace {

constexpr MetricKind kMetrics[] = {{"accuracy", "accuracy"}, {"macro_f1", "macro-F1"}};

double label_bytes(const TaskSize& size) {
  return example_bytes(size, 4) + 4.0 * static_cast<double>(size.graph.nodes) / size.ranks;
}

// A label of each row of the logits.
double judging_bytes(const TaskSize& size) {
  return 4.0 * static_cast<double>(size.graph.nodes) / size.ranks;
}

// Three counts of each class, of three splits.
Cost judging(const TaskSize& size, int) {
  const auto volume = all_reduce_volume(3 * 24 * size.graph.classes, size.ranks);
  return {static_cast<double>(volume.messages), static_cast<double>(volume.bytes_received),
          static_cast<double>(volume.rounds)};
}

}  // namespace

constinit const TaskKind kClassesKind = {.name = "classes",
                                         .several_labels = false,
                                         .metrics = kMetrics,
                                         .noun = "class",
                                         .example = "vertex",
                                         .outputs = count_classes,
                                         .splits = count_vertices,
                                         .read_examples = read_training_vertices,
                                         .label_bytes = label_bytes,
                                         .judging_bytes = judging_bytes,
                                         .judging = judging};

std::unique_ptr<Targets> read_classes_targets(const Grid& grid, const GraphFile& file,
                                              const Ownership& blocks, const Config&, const BatchGroups*) {
  auto targets = std::make_unique<ClassTargets>();
  read_splits(grid, file, blocks, *targets);
  targets->outputs = file.info().classes;
  targets->judged_labels = OwnedReader(grid, file, blocks).labels();
  targets->train_labels = gather_for_training(grid, *targets, targets->judged_labels, 1);
  return targets;
}

void cross_entropy(const Cpu& cpu, const Matrix<float>& logits, std::span<const std::int32_t> labels,
                   Buffer<std::int32_t>&, double scale, Matrix<float>& dlogits, double* loss) {
  *loss = softmax_cross_entropy(cpu, logits, labels, scale, dlogits);
}

void weighted_cross_entropy(const Cpu& cpu, const Matrix<float>& logits, std::span<const std::int32_t> labels,
                            Buffer<std::int32_t>&, const Buffer<double>& weights, double smoothing,
                            double scale, Matrix<float>& dlogits, double* loss) {
  *loss = weighted_cross_entropy(cpu, logits, labels, weights, smoothing, scale, dlogits);
}

std::vector<double> balanced_weights(std::span<const std::int32_t> labels, std::int64_t classes) {
  std::vector<double> counts(static_cast<std::size_t>(classes), 0.0);
  for (const auto label : labels) ++counts[label];
  const auto present = static_cast<double>(classes - std::ranges::count(counts, 0.0));
  for (double& count : counts)
    if (count > 0) count = static_cast<double>(labels.size()) / (present * count);
  return counts;
}

std::unique_ptr<Task> make_classes(const Cpu& cpu, const Grid& grid, const Targets& targets,
                                   const TrainConfig& train) {
  return std::make_unique<ClassesOn<Cpu>>(cpu, grid, dynamic_cast<const ClassTargets&>(targets), train);
}

}  // namespace espalier
