#include "job_labels.hpp"

#include <algorithm>

#include "espalier/train/classes.hpp"
#include "espalier/train/labels.hpp"
#include "espalier/train/task.hpp"

namespace espalier {

JobLabels::JobLabels(const Job& job) {
  const auto& world = job.grid->world();
  const auto& task = task_kind_of(job.config.train.task);
  if (!task.of_labels || !job.graph.has_labels) {
    if (!task.of_labels) kind_ = task.name;
    examples_ = task.read_examples(world, *job.file, job.config, job.owners.groups.get());
    return;
  }
  targets_ = read_targets(*job.grid, *job.file, job.owners.blocks, job.config, job.owners.groups.get());
  kind_ = task.name;
  if (const auto* one = dynamic_cast<const ClassTargets*>(targets_.get())) {
    examples_ = std::make_unique<VertexSource>(LearntVertices{one->train, one->train_labels});
    return;
  }
  for (std::int64_t k = 0; k < std::ssize(targets_->train); ++k)
    places_.push_back(static_cast<std::int32_t>(k));
  examples_ = std::make_unique<VertexSource>(LearntVertices{targets_->train, places_});
}

SeedLabels JobLabels::of(const SeedBatch& batch) {
  if (targets_ == nullptr) return {.links = batch.links()};
  if (places_.empty()) return {.classes = batch.tags()};
  const auto& labels = dynamic_cast<const LabelTargets&>(*targets_).train_labels;
  several_.assign(batch.tags().size() * static_cast<std::size_t>(labels.columns), kUnknownLabel);
  for (std::size_t k = 0; k < batch.tags().size(); ++k)
    if (batch.tags()[k] >= 0)
      std::copy_n(labels.row(batch.tags()[k]), labels.columns,
                  several_.begin() + static_cast<std::ptrdiff_t>(k) * labels.columns);
  return {.several = several_, .columns = labels.columns};
}

}  // namespace espalier
