// Minibatch training over the grid: the epoch of design section 2.
//
//     shuffle ─► batches ─► bulk samples
//     per step: fetch ─► forward, loss, backward ─► reduce ─► optimiser
//
// With run.overlap the rows of later steps travel, and a thread samples the next window, while a
// step computes (step_pipeline.hpp). What is computed, and in which order, stays the same. Then the
// stages `sample` and `fetch` are what is left to wait for.
//
// A step averages the gradient over the seeds of its `batches_per_step` minibatches, whichever
// ranks keep them. Weights are the same on every rank at every moment.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "espalier/base/config.hpp"
#include "espalier/base/stage_clock.hpp"
#include "espalier/nn/network.hpp"
#include "espalier/sample/epoch_sampler.hpp"
#include "espalier/train/evaluator.hpp"
#include "espalier/train/gradient_reduction.hpp"
#include "espalier/train/network_tensors.hpp"
#include "espalier/train/optimizer.hpp"
#include "espalier/train/report.hpp"
#include "espalier/train/step_pipeline.hpp"
#include "espalier/train/task.hpp"
#include "espalier/train/training_state.hpp"

namespace espalier {

/// What happens between two steps.
enum class Next { kGoOn, kSave, kSaveAndStop };

/// What the caller does while training goes on; each may be empty.
struct TrainingProgress {
  std::function<void(std::int64_t epoch, std::int64_t step, std::int64_t steps)> on_step = {};
  std::function<void(const EpochReport&)> on_epoch = {};
  /// Collective, with the same answer on every rank. Asked when a step is done, and when an epoch
  /// is, its evaluation included (step 0 of the next). `steps`: of the cursor's epoch, where it has
  /// begun; `last`: training is done.
  std::function<Next(const Cursor&, std::int64_t steps, bool last)> next = {};
  /// Collective. Given the state where `next` asked to save; its tensors are read in the call.
  std::function<void(const TrainingState&)> save = {};
  /// Collective, with the same answer on every rank. Asked between two chunks of an evaluation:
  /// false gives it up, to save and stop where it began.
  std::function<bool()> goes_on = {};
};

struct TrainingResult {
  std::optional<Metrics> test;          ///< with the weights of the best validation metric
  std::vector<std::int64_t> confusion;  ///< the same, of all ranks (Evaluation::confusion)
  std::int64_t best_epoch = 0;
  bool stopped_early = false;          ///< by train.early_stop
  std::optional<Divergence> diverged;  ///< then what is here is of the epochs before
  std::optional<Cursor> interrupted;   ///< where `next` asked to stop: network() holds the weights
                                       ///< of that moment
};

/// What to change where the loss grows: the keys that are set beyond what is usual, those furthest
/// beyond first, or else the learning rate and the features. "lower train.weight_decay (1e+30; 0.1
/// is a lot)".
std::string remedy_for_divergence(const Config& config);

/// On a GPU the host does not wait inside of a step, where all rows of H are local: losses stay on
/// the device until the epoch ends, and a gradient that is not finite is noticed then.
template <class Space>
class TrainerOn {
 public:
  TrainerOn(const Space& space, const TrainingJobOn<Space>& job);

  /// Collective. Goes on from here instead of from the beginning; reads the tensors of the state.
  /// Throws UserError(kInput), on every rank, when the state is not one of this network and
  /// optimiser, or cannot be read. What hooks of a step missed there, and go on without, in words.
  std::vector<std::string> restore(const TrainingState& state);

  /// Collective. Trains all epochs that are left (or stops early, or diverges), leaves the best
  /// weights in network(), if an epoch was evaluated.
  TrainingResult train(const TrainingProgress& progress);

  // The same, step by step: while (!done()) { while (step()) {} end_epoch(); }, then result(). All
  // collective, but done(); throw UserError(kDiverged) on every rank.

  /// Is there nothing left to train?
  bool done() const;
  /// Takes the next step of the epoch. Are there more?
  bool step();
  /// When there are none: evaluates, if that is due, and says what the epoch did.
  EpochReport end_epoch();
  /// Ends training, wherever it is: the best weights are in network(), if an epoch was evaluated.
  TrainingResult result();
  /// Between two steps: the scores of the weights of this moment.
  Evaluation evaluate_now();
  /// Not collective. Waits for the thread that samples ahead, so that others may communicate.
  void rest() { pipeline_.wait_for_sampling(); }
  /// The next step to be taken.
  const Cursor& cursor() const { return cursor_; }
  /// So far; 0: none.
  std::int64_t best_epoch() const { return result_.best_epoch; }
  /// Its weights alone, as a checkpoint has them: read from where they lie until the next
  /// evaluation. Also when train() has thrown.
  TrainingState best();

  Network<float, Space>& network() { return network_; }
  TrainedWeights trained() const { return trained_weights(space_, network_, job_.input); }
  /// Collective.
  std::uint64_t weights_digest() const { return espalier::weights_digest(grid_.world(), trained()); }
  const StageTimers& timers() const { return timers_; }

 private:
  using Place = TensorPlaceOn<Space>;

  void train_epochs(const TrainingProgress& progress);
  void begin_epoch();
  void end_steps();
  bool is_evaluated() const;
  EpochReport take_report();
  /// Ends training, on every rank: `what` is not finite, in a step (from 1) or behind the last.
  [[noreturn]] void diverge(const char* what, std::int64_t step = 0, const std::string& detail = {});
  void check_weights();
  bool goes_on(const TrainingProgress& progress, std::int64_t steps, bool within_epoch);
  void take_up_losses(const EpochPlan& plan);
  TrainingState state(bool within_epoch);
  Counters counters_of_done();
  std::vector<double> losses_of_done(const EpochPlan& plan);
  void train_step(const EpochPlan& plan, std::int64_t step, const TrainingStepOn<Space>& work);
  void note_work(const TrainingStepOn<Space>& step);
  void run_minibatch(const TrainingStepOn<Space>& work, std::size_t number, const EpochPlan& plan,
                     std::int64_t of_step, double scale);
  bool evaluate_epoch(const TrainingProgress& progress, EpochReport& report);
  std::optional<Evaluation> evaluate(const std::function<bool()>& goes_on);
  void note_evaluation(const Evaluation& evaluation, EpochReport& report);
  void save_unevaluated(const TrainingProgress& progress, const EpochReport& report);
  std::int64_t next_step() const;
  /// The trained tensors, and the optimiser's, with their names in a checkpoint.
  std::vector<Place> weights();
  std::vector<Place> other_tensors();
  RowRange rows_to_save(std::int64_t rows) const;
  StateTensor state_of(const Place& place) const;
  StateTensor state_of_best(const Place& place, std::size_t k) const;
  void restore_tensors(const TrainingState& state, std::vector<std::string>& missing);
  void keep_best();
  std::vector<std::int64_t> whole_confusion(std::string_view label) const;
  void restore_best();

  Space space_;
  TrainingJobOn<Space> job_;
  const Grid& grid_;
  Network<float, Space> network_;
  Optimizer<float, Space> optimizer_;
  NetworkReductionOn<Space> reduction_;
  StepHooksOn<Space> hooks_;
  std::vector<Matrix<float, Space>> gradients_;
  /// By the logits of the minibatch under way.
  Matrix<float, Space> loss_gradient_;
  EdgesOn<Space> edges_;
  InputMatrices<Space> inputs_;  ///< of the step that computes
  /// Of this run in the epoch: mine.
  std::int64_t edges_done_ = 0, rows_done_ = 0, remote_rows_done_ = 0;
  Array<Space, double> losses_;  ///< of this rank's minibatches of the epoch, sums
                                 ///< over seeds
  std::size_t losses_count_ = 0;
  Array<Space, int> diverged_;           ///< [1] was a gradient not finite?
  std::vector<Buffer<float>> best_;      ///< of weights(), the rows that this rank saves,
                                         ///< host memory
  std::vector<std::int64_t> confusion_;  ///< this rank's share, with the best weights
  std::int64_t evaluations_without_gain_ = 0;
  double best_metric_ = -1;
  Cursor cursor_;
  /// Of the cursor's epoch, what another run has done: losses of its batches, what was sampled and
  /// counted for them.
  std::vector<double> restored_losses_;
  SampleCounts restored_counts_;
  std::map<std::string, std::int64_t> restored_counters_;
  TrainingResult result_;
  StageTimers timers_;
  std::optional<EpochReport> report_;                ///< of the epoch that has begun
  std::optional<StageTimers::Scope> time_of_steps_;  ///< while it takes steps
  StageClock<Space> clock_;
  StepPipelineOn<Space> pipeline_;  ///< last: it uses the others
};

using Trainer = TrainerOn<Cpu>;

}  // namespace espalier
