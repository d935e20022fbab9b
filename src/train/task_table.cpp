// What the program knows of its tasks; the table is in tasks.inl.hpp.
#include <fmt/format.h>

#include <ranges>

#include "espalier/base/named.hpp"
#include "espalier/sample/sampler.hpp"
#include "tasks.inl.hpp"

namespace espalier {

namespace {

#define ESPALIER_KIND(name, kind, ...) &kind,
constexpr const TaskKind* kKinds[] = {ESPALIER_TASKS(ESPALIER_KIND)};
#undef ESPALIER_KIND

}  // namespace

std::span<const TaskKind* const> task_kinds() {
  return kKinds;
}

std::int64_t seeds_of_epoch(const GraphInfo& graph, const Config& config) {
  const auto population = population_of(sampler_kind_of(config.sampler.kind), graph.nodes);
  return population > 0 ? population : graph.train;
}

std::int64_t batches_of_epoch(const GraphInfo& graph, const Config& config) {
  return count_batches(seeds_of_epoch(graph, config), config.sampler.batch_size);
}

const TaskKind& task_kind_of(const std::string& name) {
  const auto kind = [](const TaskKind* pointer) -> const TaskKind& { return *pointer; };
  return entry_named(kKinds | std::views::transform(kind), name, "train.task =");
}

const MetricKind& metric_of(const TrainConfig& train) {
  const auto& task = task_kind_of(train.task);
  if (train.metric == "auto") return task.metrics.front();
  return entry_named(task.metrics, train.metric,
                     fmt::format("with train.task = \"{}\" train.metric =", task.name));
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
