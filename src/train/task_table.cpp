// What the program knows of its tasks; the table is in tasks.inl.hpp.
#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "espalier/base/named.hpp"
#include "espalier/comm/traffic.hpp"
#include "espalier/sample/sampler.hpp"
#include "tasks.inl.hpp"

namespace espalier {

namespace {

#define ESPALIER_KIND(kind, ...) &kind,
constexpr const TaskKind* kTasks[] = {ESPALIER_TASKS(ESPALIER_KIND)};
#undef ESPALIER_KIND

}  // namespace

std::span<const TaskKind* const> task_kinds() {
  return kTasks;
}

// Of an epoch: vertices of a population, or examples.
static std::int64_t items_of_epoch(const GraphInfo& graph, const Config& config) {
  const auto population = population_of(sampler_kind_of(config.sampler.kind), graph.nodes);
  return population > 0 ? population : task_kind_of(config.train.task).examples(graph);
}

std::int64_t seeds_of_batch(const GraphInfo& graph, const Config& config) {
  const auto& kind = task_kind_of(config.train.task);
  const auto size = config.sampler.batch_size;
  return kind.seeds == nullptr ? size : kind.seeds(graph, config, std::min(size, kind.examples(graph)));
}

std::int64_t seeds_of_epoch(const GraphInfo& graph, const Config& config) {
  if (task_kind_of(config.train.task).seeds == nullptr) return items_of_epoch(graph, config);
  return batches_of_epoch(graph, config) * seeds_of_batch(graph, config);
}

std::int64_t batches_of_epoch(const GraphInfo& graph, const Config& config) {
  return count_batches(items_of_epoch(graph, config), config.sampler.batch_size);
}

const TaskKind& task_kind_of(const std::string& name) {
  const auto kind = [](const TaskKind* pointer) -> const TaskKind& { return *pointer; };
  return entry_named(kTasks | std::views::transform(kind), name, "train.task =");
}

const MetricKind& metric_of(const TrainConfig& train) {
  const auto& task = task_kind_of(train.task);
  if (train.metric == "auto") return task.metrics.front();
  return entry_named(task.metrics, train.metric,
                     fmt::format("with train.task = \"{}\" train.metric =", task.name));
}

Cost cost_of(const Volume& volume) {
  return {static_cast<double>(volume.messages), static_cast<double>(volume.bytes_received),
          static_cast<double>(volume.rounds)};
}

Cost all_reduce_cost(std::int64_t bytes, int ranks) {
  return cost_of(all_reduce_volume(bytes, ranks));
}

std::string scores_in_words(const TaskKind& task, const Metrics& metrics) {
  std::string words;
  for (const auto& metric : task.metrics)
    if (const auto value = metrics.find(metric.name))
      words += fmt::format("{}{} {:.4f}", words.empty() ? "" : ", ", metric.words, *value);
  return words;
}

std::unique_ptr<Targets> read_targets(const Grid& grid, const GraphFile& file, const Ownership& blocks,
                                      const Config& config, const BatchGroups* groups) {
  return task_kind_of(config.train.task).read_targets(grid, file, blocks, config, groups);
}

ESPALIER_INSTANTIATE_TASKS(Cpu)

}  // namespace espalier
