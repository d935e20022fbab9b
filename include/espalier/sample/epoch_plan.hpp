// One epoch: the batches of its examples, which of them make a step, and which rank keeps which.
//
// Batch b of an epoch holds the same vertices on every grid (examples.hpp). A step averages
// `batches_per_step` = S consecutive batches; batch b is kept by rank (b mod S) mod p. The last
// batch may be short, the last step may have fewer batches, and with S < p some ranks keep none.
//
// With groups (examples.hpp) S consecutive batches are of S different groups, evenly spread, or
// with S >= G of every group equally often: a stratified step. Of a step's batches in the order of
// their groups, ranks keep equal stretches: rank r keeps what belongs to the r-th part of an order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "espalier/sample/examples.hpp"

namespace espalier {

class EpochPlan {
 public:
  EpochPlan(std::shared_ptr<const Examples> examples, const EpochShape& shape);
  EpochPlan(const ExampleSource& source, const EpochShape& shape)
      : EpochPlan(source.of_epoch(shape), shape) {}
  /// Of these vertices, as VertexSource has them.
  EpochPlan(const TrainingVertices& training, const EpochShape& shape)
      : EpochPlan(VertexSource(training), shape) {}
  /// Shuffled examples.
  EpochPlan(std::span<const std::int64_t> vertices, std::int64_t batch_size, std::int64_t batches_per_step,
            int ranks, std::uint64_t seed, std::uint64_t epoch,
            std::span<const std::int32_t> label_indices = {}, const BatchGroups* groups = nullptr)
      : EpochPlan({vertices, label_indices}, {batch_size, batches_per_step, ranks, seed, epoch, groups}) {}

  std::uint64_t seed() const { return seed_; }
  std::uint64_t epoch() const { return epoch_; }
  const Examples& examples() const& { return *examples_; }
  std::int64_t batches() const { return examples_->batches(); }
  /// As long as this lives.
  SeedBatch batch(std::int64_t k) const& { return examples_->batch(k); }
  void examples() const&& = delete;
  void batch(std::int64_t) const&& = delete;
  std::int64_t steps() const { return count_batches(batches(), batches_per_step_); }
  std::int64_t step_begin(std::int64_t step) const { return step * batches_per_step_; }
  std::int64_t step_end(std::int64_t step) const {
    return std::min((step + 1) * batches_per_step_, batches());
  }
  int rank_of(std::int64_t batch) const {
    return owner_ranks_.empty() ? static_cast<int>(batch % batches_per_step_ % ranks_) : owner_ranks_[batch];
  }
  /// Batches [begin, end) that `rank` keeps.
  std::vector<std::int64_t> kept_by(int rank, std::int64_t begin, std::int64_t end) const;

 private:
  void deal();

  std::shared_ptr<const Examples> examples_;
  std::int64_t batches_per_step_;
  int ranks_;
  std::uint64_t seed_;
  std::uint64_t epoch_;
  std::vector<std::int32_t> owner_ranks_;  ///< [batches] with groups
};

}  // namespace espalier
