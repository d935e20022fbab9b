#include "espalier/train/trainer.hpp"

#include <cmath>
#include <utility>

#include "espalier/nn/softmax_cross_entropy.hpp"
#include "espalier/train/learning_rate.hpp"

namespace espalier {

namespace {

NetworkShape shape_of(const TrainingJob& job) {
  const auto& model = job.config.model;
  // Kipf and Welling drop input features as well; GraphSAGE's authors do not.
  const double automatic = model.kind == "gcn" ? model.dropout : 0.0;
  return {.kind = model.kind,
          .layers = static_cast<int>(model.layers),
          .inputs = job.features.width(),
          .hidden = model.hidden,
          .classes = job.targets.classes,
          .dropout = model.dropout,
          .input_dropout = model.input_dropout.value.value_or(automatic),
          .normalize = model.normalize};
}

OptimizerOptions optimizer_of(const TrainConfig& train) {
  return {.kind = train.optimizer,
          .momentum = train.momentum,
          .weight_decay = train.weight_decay,
          .weight_decay_on = train.weight_decay_on};
}

LearningRateSchedule schedule_of(const TrainConfig& train) {
  return {.kind = train.lr_schedule,
          .base = train.learning_rate,
          .epochs = train.epochs,
          .warmup = train.lr_warmup,
          .every = train.lr_step,
          .factor = train.lr_decay};
}

std::vector<Matrix<float>> shapes_like(const std::vector<Parameter<float>>& parameters) {
  std::vector<Matrix<float>> shapes;
  for (const auto& parameter : parameters) shapes.emplace_back(parameter.value.rows, parameter.value.columns);
  return shapes;
}

[[noreturn]] void refuse_divergence(std::uint64_t epoch, const TrainConfig& train) {
  usage_error(
      "the loss is not finite in epoch {}; lower train.learning_rate ({}) or normalise the features "
      "(graph.feature_norm)",
      epoch, train.learning_rate);
}

template <class Pointer, class Matrices>
std::vector<Pointer> pointers_to(Matrices& matrices) {
  std::vector<Pointer> pointers;
  for (auto& matrix : matrices) pointers.push_back(&matrix);
  return pointers;
}

}  // namespace

Trainer::Trainer(const Cpu& cpu, const TrainingJob& job)
    : cpu_(cpu),
      job_(job),
      network_(shape_of(job), static_cast<std::uint64_t>(job.config.train.seed)),
      optimizer_(optimizer_of(job.config.train), network_.parameters()),
      reduction_(job.grid.world(), job.config.train.reproducible),
      statistics_(job.grid.world(), job.config.train.reproducible),
      gradients_(shapes_like(network_.parameters())),
      mean_statistics_(network_.running_statistics()) {
  if (job.sampling_grid != nullptr) ahead_.emplace(job.sampling_grid->traffic());
}

TrainingResult Trainer::train(const TrainingProgress& progress) {
  const auto& train = job_.config.train;
  TrainingResult result;
  for (std::int64_t epoch = 1; epoch <= train.epochs && !result.stopped_early; ++epoch) {
    auto report = train_epoch(epoch, progress);
    const bool due = epoch == train.epochs || (train.eval_every > 0 && epoch % train.eval_every == 0);
    if (due) result.stopped_early = evaluate_epoch(report, result);
    finish_epoch_report(job_.grid, timers_, kTrainStages, report);
    if (progress.on_epoch) progress.on_epoch(report);
  }
  next_epoch_.reset();
  restore_best();
  return result;
}

Trainer::Epoch::Epoch(const TrainingJob& job, std::int64_t number, SampleAhead* ahead)
    : plan(job.targets.train, job.config.sampler.batch_size, job.batches_per_step, job.grid.ranks(),
           static_cast<std::uint64_t>(job.config.train.seed), static_cast<std::uint64_t>(number)),
      sampler(job.grid, job.sampler, plan, job.bulk, ahead) {}

std::unique_ptr<Trainer::Epoch> Trainer::open_epoch(std::int64_t number) {
  return std::make_unique<Epoch>(job_, number, ahead_ ? &*ahead_ : nullptr);
}

EpochReport Trainer::train_epoch(std::int64_t number, const TrainingProgress& progress) {
  const auto& config = job_.config;
  timers_.clear();
  job_.grid.traffic().clear();
  losses_.clear();
  EpochReport report;
  report.epoch = number;
  const StageTimers::Scope time(timers_, "total");

  const auto epoch = next_epoch_ ? std::move(next_epoch_) : open_epoch(number);
  const auto& plan = epoch->plan;
  const double rate = learning_rate(schedule_of(config.train), number - 1);
  auto begun = begin_step(*epoch, 0);
  for (std::int64_t step = 0; step < plan.steps(); ++step) {
    const auto minibatches = std::move(begun);
    {
      const StageTimers::Scope waiting(timers_, "fetch");
      job_.features.finish_fetch(cpu_, fetch_, inputs_);
    }
    const bool last = step + 1 == plan.steps();
    if (config.run.overlap && !last) begun = begin_step(*epoch, step + 1);
    train_step(plan, step, minibatches, rate);
    if (!config.run.overlap && !last) begun = begin_step(*epoch, step + 1);
    if (progress.on_step) progress.on_step(number, step + 1, plan.steps());
  }

  if (ahead_) {  // what comes next, evaluation or the next epoch, needs the grid or the window that is under way
    const StageTimers::Scope waiting(timers_, "sample");
    ahead_->worker.wait();
  }
  report.counts = total(epoch->sampler.counts(), job_.grid.world());
  report.loss = reproducible_sum(job_.grid.world(), losses_) / static_cast<double>(job_.targets.train.size());
  if (!std::isfinite(*report.loss)) refuse_divergence(plan.epoch(), config.train);
  return report;
}

// Can the first layer read the rows where they lie? Then only those of its destinations are fetched.
bool Trainer::gathers_by_itself(const Minibatch& minibatch) const {
  return job_.features.all_local() && network_.aggregates_input(minibatch.blocks[0]);
}

// Takes the minibatches of a step from the sampler and asks for their rows.
std::vector<Minibatch> Trainer::begin_step(Epoch& epoch, std::int64_t step) {
  const auto begin = epoch.plan.step_begin(step), end = epoch.plan.step_end(step);
  std::vector<Minibatch> minibatches;
  {
    const StageTimers::Scope time(timers_, "sample");
    epoch.sampler.sample_until(cpu_, end);
    minibatches = epoch.sampler.take(begin, end);
    if (ahead_) sample_ahead(epoch);
  }
  const StageTimers::Scope time(timers_, "fetch");
  std::vector<std::span<const std::int64_t>> lists;
  for (const auto& minibatch : minibatches) {
    const std::span<const std::int64_t> vertices(minibatch.vertices);
    lists.push_back(gathers_by_itself(minibatch)
                        ? vertices.first(static_cast<std::size_t>(minibatch.blocks[0].rows))
                        : vertices);
  }
  job_.features.begin_fetch(cpu_, lists, fetch_, "fetch");
  return minibatches;
}

// Keeps one window under way on the sampling thread: the next of this epoch, or the first of the next.
void Trainer::sample_ahead(Epoch& epoch) {
  const auto next = static_cast<std::int64_t>(epoch.plan.epoch()) + 1;
  if (epoch.sampler.under_way() || next_epoch_) return;
  if (!epoch.sampler.all_begun()) return epoch.sampler.begin_window(cpu_);
  if (next > job_.config.train.epochs) return;
  next_epoch_ = open_epoch(next);
  next_epoch_->sampler.begin_window(cpu_);
}

void Trainer::train_step(const EpochPlan& plan, std::int64_t step, const std::vector<Minibatch>& minibatches,
                         double rate) {
  const auto begin = plan.step_begin(step), end = plan.step_end(step);
  const double scale = 1.0 / static_cast<double>(plan.seeds(begin, end).size());
  for (std::size_t m = 0; m < minibatches.size(); ++m)
    run_minibatch(minibatches[m], inputs_[m], plan, scale, end - begin);
  {
    const StageTimers::Scope time(timers_, "reduce");
    reduction_.finish(end - begin, pointers_to<Matrix<float>*>(gradients_));
    if (!mean_statistics_.empty())
      statistics_.finish(end - begin, pointers_to<Matrix<float>*>(mean_statistics_));
  }
  for (const auto& gradient : gradients_)  // the same on every rank
    for (const float x : gradient.data)
      if (!std::isfinite(x)) refuse_divergence(plan.epoch(), job_.config.train);
  const StageTimers::Scope time(timers_, "optimizer");
  optimizer_.step(cpu_, rate, gradients_, network_.parameters());
  if (!mean_statistics_.empty()) network_.update_running_statistics(mean_statistics_);
}

void Trainer::run_minibatch(const Minibatch& minibatch, const Matrix<float>& input, const EpochPlan& plan,
                            double scale, std::int64_t batches) {
  const Pass pass = {plan.seed(), plan.epoch(), static_cast<std::uint64_t>(minibatch.number)};
  {
    const StageTimers::Scope time(timers_, "forward");
    const auto labels = job_.targets.labels_of(plan.seeds(minibatch.number));
    const bool gathers = gathers_by_itself(minibatch);
    if (gathers)
      job_.features.aggregate(cpu_, minibatch.blocks[0], minibatch.vertices, network_.input_aggregate());
    const auto& logits = network_.forward(cpu_, minibatch.blocks, input, pass,
                                          gathers ? InputForm::kAggregated : InputForm::kRows);
    losses_.push_back(softmax_cross_entropy(cpu_, logits, labels, scale, loss_gradient_));
  }
  move_rows();
  {
    const StageTimers::Scope time(timers_, "backward");
    network_.backward(cpu_, minibatch.blocks, input, pass, loss_gradient_, gradients_);
    reduction_.add(pointers_to<const Matrix<float>*>(std::as_const(gradients_)));
    if (!mean_statistics_.empty())
      statistics_.add(pointers_to<const Matrix<float>*>(network_.batch_statistics()),
                      1.0f / static_cast<float>(batches));
  }
  move_rows();
}

// Rows of the next step move while the MPI library is at work, in many libraries only then.
void Trainer::move_rows() {
  const StageTimers::Scope time(timers_, "fetch");
  fetch_.progress();
}

// Returns true when training should stop early.
bool Trainer::evaluate_epoch(EpochReport& report, TrainingResult& result) {
  const StageTimers::Scope time(timers_, "evaluate");
  const auto evaluation = job_.evaluator.evaluate(cpu_, network_);
  if (ahead_) job_.grid.traffic().take_over(job_.sampling_grid->traffic());
  if (evaluation.valid.vertices > 0) report.valid = evaluation.valid;
  const bool better = evaluation.valid.vertices == 0 || evaluation.valid.accuracy > best_metric_;
  evaluations_without_gain_ = better ? 0 : evaluations_without_gain_ + 1;
  if (better) {
    best_metric_ = evaluation.valid.accuracy;
    result.best_epoch = report.epoch;
    if (evaluation.test.vertices > 0) result.test = evaluation.test;
    keep_best();
  }
  const auto patience = job_.config.train.early_stop;
  return patience > 0 && evaluations_without_gain_ >= patience;
}

void Trainer::keep_best() {
  best_.clear();
  for (const auto& parameter : network_.parameters()) best_.push_back(parameter.value);
  for (const auto& statistic : network_.running_statistics()) best_.push_back(statistic);
}

void Trainer::restore_best() {
  if (best_.empty()) return;
  auto from = best_.begin();
  for (auto& parameter : network_.parameters()) parameter.value = *from++;
  for (auto& statistic : network_.running_statistics()) statistic = *from++;
}

}  // namespace espalier
