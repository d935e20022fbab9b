// The table of tasks. A new one is a file and its twin that define make_NAME, a description
// (kNAMEKind), read_NAME_targets, and a line here.
#pragma once

#include <string_view>

#include "espalier/train/classes.hpp"
#include "espalier/train/labels.hpp"
#include "espalier/train/links.hpp"

// clang-format off
//   name     description
#define ESPALIER_TASKS(task) \
  task(classes, kClassesKind) \
  task(labels,  kLabelsKind)  \
  task(links,   kLinksKind)
// clang-format on

namespace espalier {

#define ESPALIER_DECLARE(name, ...)                                                               \
  std::unique_ptr<Targets> read_##name##_targets(const Grid& grid, const GraphFile& file,         \
                                                 const Ownership& blocks, const Config& config,   \
                                                 const BatchGroups* groups);                      \
  std::unique_ptr<Task> make_##name(const Cpu&, const Grid&, const Targets&, const TrainConfig&); \
  std::unique_ptr<TaskOn<Cuda>> make_##name(const Cuda&, const Grid&, const Targets&, const TrainConfig&);
ESPALIER_TASKS(ESPALIER_DECLARE)
#undef ESPALIER_DECLARE

template <class Space>
std::unique_ptr<TaskOn<Space>> make_task(const Space& space, const Grid& grid, const Targets& targets,
                                         const TrainConfig& train) {
  const std::string_view name = task_kind_of(train.task).name;
#define ESPALIER_MAKE(task, ...) \
  if (name == #task) return make_##task(space, grid, targets, train);
  ESPALIER_TASKS(ESPALIER_MAKE)
#undef ESPALIER_MAKE
  return nullptr;
}

#define ESPALIER_INSTANTIATE_TASKS(Space)                                                      \
  template std::unique_ptr<TaskOn<Space>> make_task(const Space&, const Grid&, const Targets&, \
                                                    const TrainConfig&);

}  // namespace espalier
