// When a job saves a checkpoint, and when it stops: run.checkpoint_every, run.checkpoint_minutes,
// run.max_minutes and the signals of base/signals.hpp. Ranks agree with one reduction of a number
// between two steps, so all of them save and stop at the same step, whichever of them a signal has
// reached. Time is rank 0's.
//
// run.max_minutes: what comes next, a step or the evaluation of an epoch, is begun only if it would
// end, and a checkpoint be written, before the limit, judged by the longest of its kind so far and
// half as long again.
#pragma once

#include <cstdint>
#include <string>

#include "espalier/base/config.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/train/trainer.hpp"

namespace espalier {

class SavePolicy {
 public:
  /// `goes_on`: from a checkpoint of an earlier run.
  SavePolicy(const Communicator& world, const RunConfig& run, bool goes_on);

  /// Collective. TrainingProgress::next. The end is saved where checkpoints are asked for or there
  /// is one already, and is no moment to stop at.
  Next next(const Cursor& cursor, std::int64_t steps, bool last);

  /// Collective. TrainingProgress::goes_on: should an evaluation go on? Time gives it up only where
  /// this run has done something before it, so that a chain of short runs arrives.
  bool goes_on();

  /// Was the last checkpoint asked for by a signal?
  bool was_asked() const { return was_asked_; }

  /// A checkpoint was written, which took so long.
  void saved(double seconds);

  /// Why next() said to stop: "SIGTERM", "run.max_minutes = 30".
  std::string reason() const;

 private:
  /// Does the epoch's end come next, or a step? Is a checkpoint due in any case, before it?
  bool time_is_up(bool epoch_ends, bool saves_now) const;

  const Communicator& world_;
  RunConfig run_;
  double last_save_, last_moment_;                                      ///< seconds of the clock
  double step_seconds_ = 0, epoch_end_seconds_ = 0, save_seconds_ = 0;  ///< the longest so far
  std::int64_t stop_vote_ = 0;
  bool was_asked_ = false;
  bool saves_end_;
  bool moved_ = false;  ///< has next() been asked?
};

}  // namespace espalier
