#include "espalier/train/targets.hpp"

#include <algorithm>

#include "espalier/partition/row_partition.hpp"
#include "espalier/train/task.hpp"

namespace espalier {

Buffer<std::int64_t> part_of(const Buffer<std::int64_t>& ids, const RowRange& range) {
  return {std::lower_bound(ids.begin(), ids.end(), range.begin),
          std::lower_bound(ids.begin(), ids.end(), range.end)};
}

void place_targets(const Grid& grid, std::int64_t nodes, Targets& targets) {
  const auto blocks = block_partition(nodes, grid.rows());
  targets.block = {blocks.begin(grid.row()), blocks.end(grid.row())};
  const auto shares = block_partition(targets.block.size(), grid.replication());
  const auto first = targets.block.begin;
  targets.judged = {first + shares.begin(grid.column()), first + shares.end(grid.column())};
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
  place_targets(grid, info.nodes, targets);
  targets.train = file.read_split(Split::kTrain);
  targets.valid = part_of(file.read_split(Split::kValid), targets.block);
  targets.test = part_of(file.read_split(Split::kTest), targets.block);
}

}  // namespace espalier
