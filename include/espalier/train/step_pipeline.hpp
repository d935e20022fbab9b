// Steps as they come, for training and for whoever wants minibatches: their input rows with them,
// sampled and fetched ahead.
//
// With run.overlap, while a step computes, the fetches of run.prefetch_steps = k steps after it are
// under way, and a thread samples the next window. It does not stop where an epoch ends: the first
// steps of the next one travel during the last of this one, and during its evaluation (DistDGLv2,
// Zheng et al. 2022, 5.5). A fetch is three exchanges (FetchMove), each begun a step after the one
// before where k is 2 or more, so that each has a whole step to travel:
//
//     while step t computes    rows of t + 1 .. t + k - 1, ids of t + k, counts of t + k + 1
//
// The hooks of a step (step_hook.hpp) have a word in what its minibatches are before their rows are
// asked for. Which exchanges are begun when depends on the plan only, so their order is the same on
// every rank. What is computed from what does not depend on k. While a step computes a thread calls
// the MPI library, so that what is under way moves (comm/progress_thread.hpp).
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "espalier/base/stage_clock.hpp"
#include "espalier/base/work_queue.hpp"
#include "espalier/comm/progress_thread.hpp"
#include "espalier/feature/input_caches.hpp"
#include "espalier/train/step_hook.hpp"
#include "espalier/train/training_state.hpp"

namespace espalier {

/// The minibatches of a step that this rank keeps, and how many of their input rows are others'.
template <class Space>
struct TrainingStepOn {
  std::int64_t number = 0;  ///< of the job, from 0
  std::vector<MinibatchOn<Space>> minibatches;
  std::int64_t remote_rows = 0;
  /// Of each minibatch the rows that it reads of the last table; none: those of its vertices.
  std::vector<Array<Space, std::int64_t>> rows_read = {};
};

/// What steps that arrived have brought, of this rank.
struct FetchedInput {
  RemoteRows rows, bytes;
  DiskCounts of_disk;
  /// Bytes for rows of other ranks that minibatches needed as they were sampled, and not
  /// as they began; nothing: nobody knows, of minibatches that a hook has drawn.
  std::optional<std::int64_t> spared_bytes = 0;
};

/// What steps are made of; all must outlive the pipeline.
template <class Space>
struct StepSourceOn {
  const GridOn<Space>& grid;
  SamplerOn<Space>& sampler;
  const InputStoresOn<Space>& input;
  const ExampleSource& examples;
  EpochShape shape = {};         ///< of each epoch
  std::int64_t epochs = 1;       ///< nothing is begun beyond them
  std::int64_t bulk = 1;         ///< batches that are sampled together
  std::int64_t prefetched = 0;   ///< steps whose rows travel while another computes
  CacheOptions caches = {};      ///< of rows; hooks that keep some have as much of
                                 ///< the memory
  SampleAhead* ahead = nullptr;  ///< as TrainingJobOn has it
  /// As EpochSamplerOn takes them, unless a hook makes blocks of its own.
  std::vector<std::size_t> transposed = {};
};

/// Of a job's rows of features, as its config says.
template <class Space>
CacheOptions caches_of(const TrainingJobOn<Space>& job) {
  return {cache_memory(job.config.run), cache_rule_of(job.config.run.cache_policy), job.by_degree};
}

/// Those of a training.
template <class Space>
StepSourceOn<Space> steps_of(const TrainingJobOn<Space>& job);

/// The batches of an epoch, from 1.
template <class Space>
EpochPlan plan_of_epoch(const StepSourceOn<Space>& source, std::int64_t epoch) {
  auto shape = source.shape;
  shape.epoch = static_cast<std::uint64_t>(epoch);
  return EpochPlan(source.examples, shape);
}

template <class Space>
class StepPipelineOn {
 public:
  /// Everything must outlive it.
  StepPipelineOn(const Space& space, const StepSourceOn<Space>& source, const StepHooksOn<Space>& hooks,
                 StageClock<Space>& clock)
      : space_(space),
        source_(source),
        hooks_(hooks),
        clock_(clock),
        caches_(source.input, source.caches),
        progress_(source.prefetched > 0 && source.grid.host().ranks() > 1) {}

  /// Begins the epoch of `start`, at its step, or goes on with what was begun of it. What that
  /// moved is booked now: the ledger of an epoch has all of its own.
  void enter(const Cursor& start);
  /// The batches of the epoch that was entered.
  const EpochPlan& plan() const { return epoch_->plan; }

  /// Collective. The next step of the epoch, whose rows it waits for. Then begins what follows. The
  /// step's blocks point to what is in `edges`.
  TrainingStepOn<Space> next(InputMatrices<Space>& rows, EdgesOn<Space>& edges);

  /// Gives what is under way an opportunity to move.
  void progress();
  /// Waits for the thread that samples: evaluation needs its grid.
  void wait_for_sampling();
  /// An evaluation keeps rows of its own in as much memory as copies of rows on disk have, until
  /// the next step begins.
  void lend_memory_of_disk();
  /// By the steps of the epoch since it was entered.
  const FetchedInput& fetched() const { return fetched_; }
  /// The most that caches had when an evaluation began, or now; and what hooks keep.
  std::int64_t bytes_of_caches() const { return std::max(most_bytes_of_caches_, caches_.bytes()); }
  std::int64_t bytes_of_hooks() const;
  /// Mine, of the epoch's steps that next() returned, and of all of its steps that were sampled.
  SampleCounts counts_of_taken();
  SampleCounts counts_of_epoch() const;
  /// Gives up what was begun. Every rank must do it.
  void leave();

 private:
  using Hook = StepHookOn<Space>;
  using Upcoming = UpcomingStepOn<Space>;

  /// The batches of an epoch and the sampler that draws them.
  struct Epoch {
    EpochPlan plan;
    EpochSamplerOn<Space> sampler;
    Epoch(const StepSourceOn<Space>& source, EpochPlan plan_, const Cursor& start,
          std::span<const std::size_t> transposed);
  };
  /// The batches of an epoch to come, once that is done.
  struct PlanAhead {
    std::int64_t epoch = 0;
    std::shared_ptr<std::optional<EpochPlan>> plan = {};
    std::shared_future<void> done = {};
  };
  struct BegunStep {
    const Epoch* epoch;
    Upcoming step;
    PendingInputOn<Space> pending;
  };

  template <class Work>
  void booked_to(const Epoch* epoch, Work work);
  std::unique_ptr<Epoch> open(const Cursor& start);
  EpochPlan take_plan(std::int64_t epoch);
  void plan_ahead(std::int64_t epoch);
  Epoch* epoch_of_next_step();
  bool begin_step();
  Hook* drawer_of(std::int64_t step) const;
  void take_sampled(Epoch& epoch, Upcoming& step);
  void tell_caches(const Epoch& epoch, const Upcoming& next);
  void note_arrival(const Upcoming& step, const PendingInputOn<Space>& pending);
  void draw_by(Hook& part, Epoch& epoch, Upcoming& step);
  void sample_ahead(Epoch& epoch);
  void look_ahead();

  Space space_;
  StepSourceOn<Space> source_;
  const StepHooksOn<Space>& hooks_;
  StageClock<Space>& clock_;
  InputCachesOn<Space> caches_;
  std::int64_t most_bytes_of_caches_ = 0;
  std::uint64_t told_epoch_ = 0;   ///< that caches were told of last
  std::int64_t told_batches_ = 0;  ///< of it: those below
  std::int64_t fetches_ = 0;       ///< that have begun
  FetchedInput fetched_;
  /// The next one when something of it was begun.
  std::unique_ptr<Epoch> epoch_, next_epoch_;
  /// To begin, of the epoch that is being begun.
  std::int64_t next_step_ = 0;
  bool begins_next_epoch_ = false;           ///< is that the next one?
  Traffic of_next_epoch_;                    ///< what was booked for it
  SampleCounts drawn_;                       ///< by parts, of steps that next() returned
  std::deque<BegunStep> begun_;              ///< in order
  std::vector<PendingInputOn<Space>> idle_;  ///< their memory is kept
  ProgressThread progress_;                  ///< from a step until the next is asked for
  PlanAhead planned_;
  WorkQueue planner_ = WorkQueue(std::is_same_v<Space, Cuda>);  ///< last: it uses the others
};

}  // namespace espalier
