// All that training knows between two steps: what a checkpoint holds, and enough to go on with the
// same bits.
//
// Random numbers have no state (design 4.1), so the samples, masks and rates of what is left follow
// from the cursor. The state does not depend on how many ranks there are, and is the same on every
// rank, but for which rows of its tensors are whose to save.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "espalier/base/config.hpp"
#include "espalier/file/state_tensor.hpp"
#include "espalier/sample/epoch_sampler.hpp"
#include "espalier/train/evaluation.hpp"

namespace espalier {

/// `step` steps of epoch `epoch` (from 1) are done; with all of them done the epoch is not yet
/// evaluated.
struct Cursor {
  std::int64_t epoch = 1, step = 0;
  friend bool operator==(const Cursor&, const Cursor&) = default;
};

/// Is a training at an end there, by train.epochs or train.early_stop?
inline bool is_done(const TrainConfig& train, const Cursor& cursor, std::int64_t evaluations_without_gain) {
  return cursor.epoch > train.epochs ||
         (train.early_stop > 0 && evaluations_without_gain >= train.early_stop && cursor.step == 0);
}

struct TrainingState {
  Cursor cursor;
  /// weights/ and statistics/ (of batch normalisation), the same with best/ before it once an epoch
  /// was evaluated, optimizer/; of hooks of a step what they say.
  std::vector<StateTensor> tensors;
  std::int64_t optimizer_steps = 0;

  double best_metric = -1;
  std::int64_t best_epoch = 0, evaluations_without_gain = 0;
  std::optional<Metrics> test;          ///< of the best epoch
  std::vector<std::int64_t> confusion;  ///< the same, of all ranks (Evaluation::confusion)

  /// Of the cursor's epoch: the loss of each batch done, a sum over its seeds, and what was
  /// sampled for them.
  std::vector<double> losses;
  SampleCounts counts;
  std::map<std::string, std::int64_t> counters = {};  ///< Counters::sums of the parts of steps
};

}  // namespace espalier
