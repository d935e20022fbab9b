// The splits dealt to the ranks that evaluate them, and what labels are refused for.
#include "espalier/train/targets.hpp"

#include <algorithm>

#include "espalier/train/task.hpp"

namespace espalier {

void place_targets(const Grid& grid, const Ownership& blocks,
                   const std::array<Buffer<std::int64_t>, 3>& splits, Targets& targets) {
  targets.train = splits[static_cast<std::size_t>(Split::kTrain)];
  targets.evaluated_by = blocks.cut(grid.replication());
  targets.rank = grid.world().rank();
  for (std::size_t s = 0; s < splits.size(); ++s)
    targets.evaluated[s] = targets.evaluated_by.places_of(targets.rank, splits[s]);
}

void check_labels(const GraphInfo& graph, const std::string& path, const std::string& task) {
  constexpr const char* kOtherwise = "`espalier sample` needs none, nor does `plan --sampling`";
  if (!graph.has_labels)
    input_error("{}: the graph has no labels (/nodes/labels), so there is nothing to learn{}; {}", path,
                graph.links.exist ? " but its links: train.task = \"links\"" : "", kOtherwise);
  const auto& kind = task_kind_of(task);
  if (graph.multi_label != kind.several_labels) {
    const auto fits = std::ranges::find(task_kinds(), graph.multi_label, &TaskKind::several_labels);
    input_error(
        "{}: /nodes/labels has {} per vertex, and train.task = \"{}\" wants {}; use train.task = \"{}\"",
        path, graph.multi_label ? fmt::format("{} labels", graph.classes) : "one label", kind.name,
        kind.several_labels ? "several" : "one", (*fits)->name);
  }
  if (graph.classes < 1)
    input_error("{}: all {} vertices are unlabelled (-1) in /nodes/labels, so there is nothing to learn; {}",
                path, graph.nodes, kOtherwise);
}

void read_splits(const Grid& grid, const GraphFile& file, const Ownership& blocks, Targets& targets) {
  place_targets(
      grid, blocks,
      {file.read_split(Split::kTrain), file.read_split(Split::kValid), file.read_split(Split::kTest)},
      targets);
}

template <class T>
Buffer<T> gather_split(const Grid& grid, const Targets& targets, Split split,
                       std::span<const std::int64_t> vertices, const Buffer<T>& evaluated,
                       std::int64_t width) {
  Buffer<T> mine;
  Buffer<std::int64_t> ids;
  for (const auto place : targets.evaluated[static_cast<std::size_t>(split)]) {
    mine.insert(mine.end(), evaluated.begin() + place * width, evaluated.begin() + (place + 1) * width);
    if (targets.evaluated_by.is_map()) ids.push_back(targets.evaluated_by.vertex(targets.rank, place));
  }
  auto all = grid.world().all_gather_v(std::span<const T>(mine), "setup");
  // Ranges and split are both ascending, so the ranks' answers one after another are the answer.
  if (!targets.evaluated_by.is_map()) return all;
  const auto from = grid.world().all_gather_v(std::span<const std::int64_t>(ids), "setup");
  Buffer<T> in_order(all.size());
  for (std::int64_t k = 0; k < std::ssize(from); ++k) {
    const auto place = std::ranges::lower_bound(vertices, from[k]) - vertices.begin();
    std::copy_n(all.begin() + k * width, width, in_order.begin() + place * width);
  }
  return in_order;
}
template Buffer<std::int32_t> gather_split(const Grid&, const Targets&, Split, std::span<const std::int64_t>,
                                           const Buffer<std::int32_t>&, std::int64_t);
template Buffer<std::uint8_t> gather_split(const Grid&, const Targets&, Split, std::span<const std::int64_t>,
                                           const Buffer<std::uint8_t>&, std::int64_t);

}  // namespace espalier
