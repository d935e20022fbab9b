// The steps of training as they come: minibatches with their input rows, sampled and fetched ahead.
//
// With run.overlap, while a step computes, the fetches of run.prefetch_steps = k steps after it are
// under way, and a thread samples the next window. It does not stop where an epoch ends: the first
// steps of the next one travel during the last of this one, and during its evaluation (DistDGLv2,
// Zheng et al. 2022, 5.5). A fetch is three exchanges (FetchMove), each begun a step after the one
// before where k is 2 or more, so that each has a whole step to travel:
//
//     while step t computes    rows of t + 1 .. t + k - 1, ids of t + k, counts of t + k + 1
//
// Rows of features that others own are kept as history.memory says (feature/input_caches.hpp): what
// history takes of it is counted when a step begins, and features have the rest.
//
// Which exchanges are begun when depends on the plan only, so their order is the same on every
// rank. What is computed from what does not depend on k.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "espalier/base/stage_clock.hpp"
#include "espalier/feature/input_caches.hpp"
#include "espalier/train/training_history.hpp"
#include "espalier/train/training_job.hpp"
#include "espalier/train/training_state.hpp"

namespace espalier {

/// The minibatches of a step that this rank keeps, and how many of their input rows are others'.
template <class Space>
struct TrainingStepOn {
  std::vector<MinibatchOn<Space>> minibatches;
  std::int64_t remote_rows = 0, cached_rows = 0;  ///< asked of others; kept copies of theirs
  SavedBytes saved = {};                          ///< but for what history moved
  /// Which embeddings each minibatch reads; of all vertices: empty.
  std::vector<Array<Space, std::int64_t>> embedded = {};
  /// With history: what the minibatches were, and what they read from it. Empty where it does
  /// not work yet.
  PrunedStepOn<Space> pruned = {};
};

/// The batches of an epoch, from 1, of a job.
template <class Space>
EpochPlan plan_of_epoch(const TrainingJobOn<Space>& job, std::int64_t epoch);

template <class Space>
class StepPipelineOn {
 public:
  using RowsToFetch = typename InputStoresOn<Space>::RowsToFetch;

  /// Everything must outlive it.
  /// `history`: null without.
  StepPipelineOn(const Space& space, const TrainingJobOn<Space>& job, RowsToFetch rows_to_fetch,
                 TrainingHistoryOn<Space>* history, StageClock<Space>& clock);

  /// Begins the epoch of `start`, at its step, or goes on with what was begun of it. What that
  /// moved is booked now: the ledger of an epoch has all of its own.
  void enter(const Cursor& start);
  /// The batches of the epoch that was entered.
  const EpochPlan& plan() const { return epoch_->plan; }

  /// Collective. The next step of the epoch, whose rows it waits for. Then begins what follows. The
  /// step's blocks point to what is in `edges`.
  TrainingStepOn<Space> next(InputMatrices<Space>& rows, EdgesOn<Space>& edges);

  /// Are rows of features kept? Bytes that they take on this rank.
  bool caches() const { return !caches_.empty(); }
  std::int64_t cached_bytes() const { return caches_.bytes(); }

  /// Gives what is under way an opportunity to move.
  void progress();
  /// Waits for the thread that samples: evaluation needs its grid.
  void wait_for_sampling();
  /// Mine, of the epoch's steps that next() returned, and of all of its steps that were sampled.
  SampleCounts counts_of_taken();
  SampleCounts counts_of_epoch() const;
  /// Gives up what was begun. Every rank must do it.
  void leave();

 private:
  /// The batches of an epoch and the sampler that draws them.
  struct Epoch {
    EpochPlan plan;
    EpochSamplerOn<Space> sampler;
    std::int64_t foreseen = 0;  ///< batches below were told to the caches
    Epoch(const TrainingJobOn<Space>& job, const Cursor& start, SampleAhead* ahead);
  };
  struct BegunStep {
    const Epoch* epoch;
    TrainingStepOn<Space> step;
    PendingInputOn<Space> pending;
  };

  template <class Work>
  void booked_to(const Epoch* epoch, Work work);
  std::unique_ptr<Epoch> open(const Cursor& start);
  Epoch* epoch_of_next_step();
  bool begin_step();
  void take_sampled(Epoch& epoch, TrainingStepOn<Space>& step);
  void draw_needed(Epoch& epoch, std::int64_t number, TrainingStepOn<Space>& step);
  SavedBytes saved_by(const PrunedStepOn<Space>& pruned, const PendingInputOn<Space>& pending) const;
  void sample_ahead(Epoch& epoch);
  void foresee(Epoch& epoch);
  void look_ahead();
  std::int64_t depth() const;

  Space space_;
  const TrainingJobOn<Space>& job_;
  RowsToFetch rows_to_fetch_;
  TrainingHistoryOn<Space>* history_;
  InputCachesOn<Space> caches_;
  StageClock<Space>& clock_;
  std::optional<SampleAhead> ahead_;  ///< with a sampling grid of its own
  /// The next one when something of it was begun.
  std::unique_ptr<Epoch> epoch_, next_epoch_;
  /// To begin, of the epoch that is being begun.
  std::int64_t next_step_ = 0;
  bool begins_next_epoch_ = false;           ///< is that the next one?
  Traffic of_next_epoch_;                    ///< what was booked for it
  SampleCounts drawn_;                       ///< by history, of steps that next() returned
  std::deque<BegunStep> begun_;              ///< in order
  std::vector<PendingInputOn<Space>> idle_;  ///< their memory is kept
};

}  // namespace espalier
