// What training works with.
#pragma once

#include <cstdint>

#include "espalier/base/config.hpp"
#include "espalier/feature/input_stores.hpp"
#include "espalier/sample/epoch_sampler.hpp"
#include "espalier/train/evaluator.hpp"
#include "espalier/train/task.hpp"

namespace espalier {

/// What a trainer works with; everything must outlive it.
template <class Space>
struct TrainingJobOn {
  const GridOn<Space>& grid;
  const Config& config;
  SamplerOn<Space>& sampler;
  const InputStoresOn<Space>& input;
  TaskOn<Space>& task;
  const EvaluatorOn<Space>& evaluator;
  std::int64_t bulk = 1;              ///< resolved from sampler.bulk
  std::int64_t batches_per_step = 1;  ///< resolved from train.batches_per_step
  /// The thread that samples ahead, with run.overlap, and the ranks of the grid that `sampler` and
  /// the evaluator's sampler are made over, one of its own beside `grid`; on GPUs by
  /// Transport::kHost. Null: they are made over `grid`, and windows are sampled when needed.
  SampleAhead* ahead = nullptr;
  InputShape input_shape = {};          ///< of the network; none: that of one table of features
  const BatchGroups* groups = nullptr;  ///< of local batches, or null
  std::int64_t population = 0;          ///< of the batches, as EpochShape has it
  /// Vertices whose features are worth keeping, best first (rows_by_degree); with run.cache_memory.
  std::span<const std::int64_t> by_degree = {};
};

}  // namespace espalier
