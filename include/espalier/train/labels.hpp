// The task "labels": each vertex has or has not each of `outputs` labels, as far as that is known.
#pragma once

#include "espalier/train/task.hpp"

namespace espalier {

struct LabelTargets : Targets {
  Matrix<std::uint8_t> train_labels;      ///< [train, outputs]: 0, 1 or kUnknownLabel
  Matrix<std::uint8_t> evaluated_labels;  ///< [evaluated_rows(), outputs]: of the vertices that
                                          ///< I evaluate
};

extern const TaskKind kLabelsKind;

}  // namespace espalier
