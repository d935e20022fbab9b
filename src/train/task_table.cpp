// What the program knows of its tasks; the table is in tasks.inl.hpp.
#include <fmt/format.h>

#include "espalier/base/error.hpp"
#include "espalier/base/nearest.hpp"
#include "tasks.inl.hpp"

namespace espalier {

namespace {

#define ESPALIER_KIND(name, kind, ...) &kind,
constexpr const TaskKind* kKinds[] = {ESPALIER_TASKS(ESPALIER_KIND)};
#undef ESPALIER_KIND

// "accuracy, macro_f1".
std::string metric_names(const TaskKind& task) {
  std::string list;
  for (const auto& metric : task.metrics) list += (list.empty() ? "" : ", ") + std::string(metric.name);
  return list;
}

}  // namespace

std::span<const TaskKind* const> task_kinds() {
  return kKinds;
}

const TaskKind& task_kind_of(const std::string& name) {
  std::vector<std::string> names;
  std::string list;
  for (const auto* kind : kKinds) {
    if (name == kind->name) return *kind;
    names.emplace_back(kind->name);
    list += std::string(list.empty() ? "" : ", ") + kind->name;
  }
  usage_error("train.task = {} is not a task; did you mean {}? The tasks are {}", name, nearest(name, names),
              list);
}

const MetricKind& metric_of(const TrainConfig& train) {
  const auto& task = task_kind_of(train.task);
  if (train.metric == "auto") return task.metrics.front();
  for (const auto& metric : task.metrics)
    if (train.metric == metric.name) return metric;
  usage_error(
      "train.metric = {} is not a metric of train.task = \"{}\", which is judged by {}; choose one, or auto",
      train.metric, task.name, metric_names(task));
}

std::string scores_in_words(const TaskKind& task, const Metrics& metrics) {
  std::string words;
  for (const auto& metric : task.metrics)
    if (const auto value = metrics.find(metric.name))
      words += fmt::format("{}{} {:.4f}", words.empty() ? "" : ", ", metric.words, *value);
  return words;
}

std::unique_ptr<Targets> read_targets(const Grid& grid, const GraphFile& file, const Ownership& blocks,
                                      const std::string& task) {
  const std::string_view name = task_kind_of(task).name;
#define ESPALIER_READ(task, ...) \
  if (name == #task) return read_##task##_targets(grid, file, blocks);
  ESPALIER_TASKS(ESPALIER_READ)
#undef ESPALIER_READ
  return nullptr;
}

ESPALIER_INSTANTIATE_TASKS(Cpu)

}  // namespace espalier
