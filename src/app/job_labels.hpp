// The labels of the seeds of sampled batches, or their links, for `espalier sample --write`.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "espalier/sample/examples.hpp"
#include "espalier/sample/minibatch_file.hpp"
#include "espalier/train/targets.hpp"
#include "job.hpp"

namespace espalier {

/// What the seeds of a job's batches are to become, where the graph says so.
class JobLabels {
 public:
  /// Collective, while the graph file is open, whose labels, or links, the check of a job (kWrite)
  /// has let through; a graph may have no labels.
  explicit JobLabels(const Job& job);

  /// The job's examples, whose tags of() reads.
  const ExampleSource& examples() const { return *examples_; }
  /// Of the seeds of a batch, as long as both live and until it is called again. Local.
  SeedLabels of(const SeedBatch& batch);
  SeedLabels of(const SeedBatch&&) = delete;
  /// "classes", "labels", "links", or "none".
  const char* kind() const { return kind_; }

 private:
  std::unique_ptr<Targets> targets_;
  Buffer<std::int32_t> places_;  ///< of training vertices in their list, where they have several
  std::unique_ptr<ExampleSource> examples_;
  const char* kind_ = "none";
  std::vector<std::uint8_t> several_;
};

}  // namespace espalier
