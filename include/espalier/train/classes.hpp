// The task "classes": each vertex has one of `outputs` classes, by its label.
#pragma once

#include "espalier/train/task.hpp"

namespace espalier {

struct ClassTargets : Targets {
  Buffer<std::int32_t> train_labels;  ///< beside train
  Buffer<std::int32_t> local_labels;  ///< of my block row; -1: none
};

extern const TaskKind kClassesKind;

}  // namespace espalier
