#include "espalier/train/targets.hpp"

#include <algorithm>

namespace espalier {

namespace {
// The ids of an ascending list that lie in [begin, end).
Buffer<std::int64_t> part_of(const Buffer<std::int64_t>& ids, std::int64_t begin, std::int64_t end) {
  return {std::lower_bound(ids.begin(), ids.end(), begin), std::lower_bound(ids.begin(), ids.end(), end)};
}
}  // namespace

void check_labels(const GraphInfo& graph, const std::string& path, const char* otherwise) {
  if (graph.multi_label)
    input_error("{}: /nodes/labels is multi-label; this version trains single-label classification only",
                path);
  if (!graph.has_labels)
    input_error("{}: the graph has no labels (/nodes/labels), so there is nothing to learn{}", path,
                otherwise);
  if (graph.classes < 1)
    input_error("{}: all {} vertices are unlabelled (-1) in /nodes/labels, so there is nothing to learn{}",
                path, graph.nodes, otherwise);
}

Targets read_targets(const Grid& grid, const GraphFile& file) {
  const auto& info = file.info();
  check_labels(info, file.path());
  if (info.train == 0)
    input_error("{}: /split/train is empty or absent; import the graph with a split", file.path());
  check_splits(grid.world(), file);

  Targets targets;
  targets.classes = info.classes;
  targets.train = file.read_split(Split::kTrain);
  targets.partition = block_partition(info.nodes, grid.rows());
  const auto begin = targets.partition.begin(grid.row()), end = targets.partition.end(grid.row());
  targets.local_labels = file.read_labels(begin, end);
  targets.valid = part_of(file.read_split(Split::kValid), begin, end);
  targets.test = part_of(file.read_split(Split::kTest), begin, end);

  // Blocks and split are both ascending, so the blocks' answers one after another are the answer.
  Buffer<std::int32_t> mine;
  for (const auto vertex : part_of(targets.train, begin, end))
    mine.push_back(targets.local_labels[vertex - begin]);
  targets.train_labels = grid.column_comm().all_gather_v(std::span<const std::int32_t>(mine), "setup");
  return targets;
}

}  // namespace espalier
