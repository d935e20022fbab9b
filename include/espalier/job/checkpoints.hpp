// What a training job goes on from, and what it saves on its way.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "espalier/base/config.hpp"
#include "espalier/job/job.hpp"
#include "espalier/job/run_output.hpp"
#include "espalier/train/checkpoint.hpp"
#include "espalier/train/checkpoint_folder.hpp"
#include "espalier/train/save_policy.hpp"

namespace espalier {

/// A checkpoint to go on from.
struct Restart {
  std::string path;
  Checkpoint checkpoint;
  Config config;           ///< of the run that saved it
  std::string anew;        ///< how to begin anew instead, for messages
  bool in_output = false;  ///< it lies in output.dir: the run there goes on
};

/// Collective. What run.restart names, the same on every rank; nothing where training begins anew.
/// With "auto" the newest checkpoint in output.dir that is whole. A run that is to be replaced is
/// not gone on from, unless a path names it. The listener of rank 0 is told of damaged ones. Throws
/// UserError.
std::optional<Restart> find_restart(const Communicator& world, const Config& config,
                                    const EarlierOutput& output, const log::Listener& listener = {});

/// Throws UserError(kUsage), on every rank, when the checkpoint is not one of this job: another
/// graph, or keys that lead elsewhere. A path that was named may change keys that the rest of the
/// training can go on with; a warning says which.
void check_restart(const Job& job, const Restart& restart);

/// Throws UserError(kUsage), on every rank, when the checkpoint was saved in training on other
/// contents of the graph file than these, and names the data sets that differ. Nothing is thrown
/// where one of them is not known.
void check_same_content(const Job& job, const ContentDigests& here, const Restart& restart);

/// Is there nothing left to train behind it?
bool is_done(const Job& job, const Restart& restart);

/// Throws UserError(kUsage), on every rank, where more was trained than train.epochs asks for.
void check_epochs(const Job& job, const Restart& restart);

/// "goes on from out/checkpoints/epoch-0003-step-000040.h5 (40 steps of epoch 3 done, saved by
/// 4 ranks)".
std::string restart_in_words(const Job& job, const Restart& restart);

/// Collective. The state with all rows of its tensors in the memory of every rank: it can be gone
/// on from when the training that it is of, or the file that it was read from, is gone.
TrainingState kept_in_memory(const Communicator& world, TrainingState state);

/// Saves by run.checkpoint_* and run.max_minutes and when a signal asks (train/save_policy.hpp), in
/// output.dir/checkpoints. Must not outlive the job.
class JobCheckpoints {
 public:
  JobCheckpoints(const Job& job, const std::optional<Restart>& restart);

  /// Says so where none will be saved.
  void describe() const;

  /// Collective. TrainingProgress::next.
  Next next(const Cursor& cursor, std::int64_t steps, bool last);

  /// Collective. TrainingProgress::goes_on.
  bool goes_on();

  /// Is the next one to be saved the last thing that this run does?
  bool stopping() const { return stopping_; }

  /// Collective. A checkpoint that cannot be written is a warning while training goes on, and an
  /// error where it was to end with it.
  void save(const TrainingState& state, const std::vector<EpochReport>& history);

  /// Ends the command where training was interrupted: UserError(kSignal) that says how to go on.
  [[noreturn]] void leave_interrupted(const Cursor& cursor) const;

  /// Which checkpoint has the weights of the best epoch, in words, or that none has.
  std::string holder(std::int64_t best_epoch) const;

  /// How many were saved, and how long it took.
  void report(RunReport& report) const;

 private:
  const Job& job_;
  CheckpointFolder folder_;
  SavePolicy policy_;
  std::string latest_;  ///< name of the file saved last, or gone on from
  std::string named_;   ///< the one that run.restart names, which stays
  struct {
    std::string path;
    std::int64_t epoch = 0;
  } best_;  ///< of the checkpoint saved last, or gone on from: the epoch of its best weights
  bool stopping_ = false;
  std::int64_t saved_ = 0;
  double seconds_ = 0;
};

}  // namespace espalier
