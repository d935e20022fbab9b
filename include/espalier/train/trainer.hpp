// Minibatch training over the grid: the epoch of design section 2.
//
//     shuffle ─► batches ─► bulk samples ─► per step: fetch ─► forward, loss, backward ─► reduce ─► optimiser
//
// With run.overlap the rows of step t + 1 travel, and a thread samples the next window (the next epoch's first one
// after the last), while step t computes. What is computed, and in which order, stays the same; so does the order of
// collectives on every rank, which depends on the plan only. Then the stages `sample` and `fetch` are what is left to
// wait for.
//
// A step averages the gradient over the seeds of its `batches_per_step` minibatches, whichever ranks keep
// them. Weights are the same on every rank at every moment.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "espalier/base/config.hpp"
#include "espalier/base/timer.hpp"
#include "espalier/feature/store.hpp"
#include "espalier/nn/network.hpp"
#include "espalier/sample/epoch_sampler.hpp"
#include "espalier/train/evaluator.hpp"
#include "espalier/train/gradient_reduction.hpp"
#include "espalier/train/optimizer.hpp"
#include "espalier/train/report.hpp"
#include "espalier/train/targets.hpp"

namespace espalier {

/// What a trainer works with; everything must outlive it.
struct TrainingJob {
  const Grid& grid;
  const Config& config;
  Sampler& sampler;
  const FeatureStore& features;
  const Targets& targets;
  const Evaluator& evaluator;
  std::int64_t bulk = 1;              ///< resolved from sampler.bulk
  std::int64_t batches_per_step = 1;  ///< resolved from train.batches_per_step
  /// The grid that `sampler` and the evaluator's sampler are made over, when it is one of its own beside `grid`: with
  /// run.overlap a thread samples ahead on it. Null: they are made over `grid`, and windows are sampled when needed.
  const Grid* sampling_grid = nullptr;
};

/// What the caller may show while training goes on.
struct TrainingProgress {
  std::function<void(std::int64_t epoch, std::int64_t step, std::int64_t steps)> on_step;
  std::function<void(const EpochReport&)> on_epoch;
};

struct TrainingResult {
  std::optional<Metrics> test;  ///< with the weights of the best validation metric
  std::int64_t best_epoch = 0;
  bool stopped_early = false;
};

class Trainer {
 public:
  Trainer(const Cpu& cpu, const TrainingJob& job);

  /// Collective. Trains all epochs (or stops early), leaves the best weights in network(). Throws
  /// UserError(kUsage) when the loss is no longer finite.
  TrainingResult train(const TrainingProgress& progress);

  Network<float>& network() { return network_; }
  const StageTimers& timers() const { return timers_; }

 private:
  /// The batches of an epoch and the sampler that draws them.
  struct Epoch {
    EpochPlan plan;
    EpochSampler sampler;
    Epoch(const TrainingJob& job, std::int64_t number, SampleAhead* ahead);
  };

  std::unique_ptr<Epoch> open_epoch(std::int64_t number);
  EpochReport train_epoch(std::int64_t epoch, const TrainingProgress& progress);
  std::vector<Minibatch> begin_step(Epoch& epoch, std::int64_t step);
  void sample_ahead(Epoch& epoch);
  void train_step(const EpochPlan& plan, std::int64_t step, const std::vector<Minibatch>& minibatches,
                  double learning_rate);
  bool gathers_by_itself(const Minibatch& minibatch) const;
  void run_minibatch(const Minibatch& minibatch, const Matrix<float>& input, const EpochPlan& plan,
                     double scale, std::int64_t batches);
  void move_rows();
  bool evaluate_epoch(EpochReport& report, TrainingResult& result);
  void keep_best();
  void restore_best();

  Cpu cpu_;
  TrainingJob job_;
  Network<float> network_;
  Optimizer<float> optimizer_;
  GradientReduction reduction_;
  GradientReduction statistics_;
  std::vector<Matrix<float>> gradients_, mean_statistics_;
  Matrix<float> loss_gradient_;        ///< by the logits of the minibatch under way
  std::vector<Matrix<float>> inputs_;  ///< of the step that computes
  PendingFetch fetch_;                 ///< of the step that was begun
  std::vector<double> losses_;         ///< of this rank's minibatches of the epoch, sums over seeds
  std::vector<Matrix<float>> best_;
  std::int64_t evaluations_without_gain_ = 0;
  double best_metric_ = -1;
  StageTimers timers_;
  std::optional<SampleAhead> ahead_;   ///< with a sampling grid of its own
  std::unique_ptr<Epoch> next_epoch_;  ///< when its first window was begun ahead
};

}  // namespace espalier
