// The task "classes": each vertex has one of `outputs` classes, by its label.
#pragma once

#include <span>
#include <vector>

#include "espalier/train/task.hpp"

namespace espalier {

struct ClassTargets : Targets {
  Buffer<std::int32_t> train_labels;      ///< beside train
  Buffer<std::int32_t> evaluated_labels;  ///< of the vertices that I evaluate; -1: none
};

/// Weights of the classes [classes] by which each class counts alike: n / (k count of the class),
/// of n labels in k classes that have any; 0 for the others. scikit-learn's
/// compute_class_weight("balanced").
std::vector<double> balanced_weights(std::span<const std::int32_t> labels, std::int64_t classes);

extern const TaskKind kClassesKind;

}  // namespace espalier
