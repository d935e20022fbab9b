#include "espalier/train/targets.hpp"

#include <algorithm>

#include "espalier/train/task.hpp"

namespace espalier {

void place_targets(const Grid& grid, const Ownership& blocks,
                   const std::array<Buffer<std::int64_t>, 3>& splits, Targets& targets) {
  targets.train = splits[static_cast<std::size_t>(Split::kTrain)];
  targets.judges = blocks.cut(grid.replication());
  targets.rank = grid.world().rank();
  for (std::size_t s = 0; s < splits.size(); ++s)
    targets.judged[s] = targets.judges.places_of(targets.rank, splits[s]);
}

void check_labels(const GraphInfo& graph, const std::string& path, const std::string& task,
                  const char* otherwise) {
  if (!graph.has_labels)
    input_error("{}: the graph has no labels (/nodes/labels), so there is nothing to learn{}", path,
                otherwise);
  const auto& kind = task_kind_of(task);
  if (graph.multi_label != kind.several_labels) {
    const auto fits = std::ranges::find(task_kinds(), graph.multi_label, &TaskKind::several_labels);
    input_error(
        "{}: /nodes/labels has {} per vertex, and train.task = \"{}\" wants {}; use train.task = \"{}\"",
        path, graph.multi_label ? fmt::format("{} labels", graph.classes) : "one label", kind.name,
        kind.several_labels ? "several" : "one", (*fits)->name);
  }
  if (graph.classes < 1)
    input_error("{}: all {} vertices are unlabelled (-1) in /nodes/labels, so there is nothing to learn{}",
                path, graph.nodes, otherwise);
}

void read_splits(const Grid& grid, const GraphFile& file, Targets& targets) {
  const auto& info = file.info();
  if (info.train == 0)
    input_error("{}: /split/train is empty or absent; import the graph with a split", file.path());
  check_splits(grid.world(), file);
  place_targets(
      grid, block_partition(info.nodes, grid.rows()),
      {file.read_split(Split::kTrain), file.read_split(Split::kValid), file.read_split(Split::kTest)},
      targets);
}

}  // namespace espalier
