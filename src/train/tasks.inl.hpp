// The table of tasks. A new one is a description, a class over the space and its targets in files
// of their own, and a line here.
#pragma once

#include "classes.inl.hpp"
#include "labels.inl.hpp"
#include "links.inl.hpp"

// clang-format off
//     description   class      what it is made over
#define ESPALIER_TASKS(task) \
  task(kClassesKind, ClassesOn, ClassTargets) \
  task(kLabelsKind,  LabelsOn,  LabelTargets) \
  task(kLinksKind,   LinksOn,   LinkTargets)
// clang-format on

namespace espalier {

template <class Space>
std::unique_ptr<TaskOn<Space>> make_task(const Space& space, const Grid& grid, const Targets& targets,
                                         const TrainConfig& train) {
  const auto* const wanted = &task_kind_of(train.task);
#define ESPALIER_MAKE(kind, Task, TargetsOfTask) \
  if (wanted == &(kind))                         \
    return std::make_unique<Task<Space>>(space, grid, dynamic_cast<const TargetsOfTask&>(targets), train);
  ESPALIER_TASKS(ESPALIER_MAKE)
#undef ESPALIER_MAKE
  return nullptr;
}

#define ESPALIER_INSTANTIATE_TASKS(Space)                                                      \
  template std::unique_ptr<TaskOn<Space>> make_task(const Space&, const Grid&, const Targets&, \
                                                    const TrainConfig&);

}  // namespace espalier
