// What TrainerOn does, for every space: trainer.cpp and trainer.cu instantiate it, with
// trainer_restart.inl.hpp, which leaves it and goes on with it. The few kernels that only training
// needs are declared here and defined there.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "espalier/base/arrays.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/dense/first_not_finite.hpp"
#include "espalier/nn/network_work.hpp"
#include "espalier/train/network_tensors.hpp"
#include "espalier/train/optimizer.hpp"
#include "espalier/train/trainer.hpp"
#include "step_hooks.inl.hpp"
#include "step_pipeline.inl.hpp"

namespace espalier {

// Notes in *flag when a number is not finite, and returns true when the flag is known to be set. A
// GPU is not asked inside of an epoch.
bool note_divergence(const Cpu&, const std::vector<Matrix<float>>& gradients, int* flag);
bool note_divergence(const Cuda&, const std::vector<Matrix<float, Cuda>>& gradients, int* flag);

// The stage of an epoch that changes weights.
inline constexpr const char* kOptimizer = "optimizer";

template <class Space>
StepSourceOn<Space> steps_for(const NetworkShape& network, const TrainingJobOn<Space>& job) {
  auto source = steps_of(job);
  source.transposed = transposed_layers(network);
  return source;
}

template <class Space>
TrainerOn<Space>::TrainerOn(const Space& space, const TrainingJobOn<Space>& job)
    : space_(space),
      job_(job),
      grid_(job.grid.host()),
      network_(space,
               network_shape(job.config.model,
                             job.input_shape.width == 0 ? InputShape(job.input.width()) : job.input_shape,
                             job.task.outputs(), job.task.tensors()),
               static_cast<std::uint64_t>(job.config.train.seed)),
      optimizer_(space,
                 {.kind = job.config.train.optimizer,
                  .momentum = job.config.train.momentum,
                  .weight_decay = job.config.train.weight_decay,
                  .weight_decay_on = job.config.train.weight_decay_on},
                 network_.parameters()),
      reduction_(space, job.grid.world(), job.config.train.reproducible, gradient_groups(network_.shape())),
      clock_(space, timers_),
      pipeline_(space, steps_for(network_.shape(), job_), hooks_, clock_) {
  gradients_ = network_.make_gradients();
  diverged_ = copy_to<int>(space, std::vector<int>{0});
  make_step_hooks<Space>({space_, job_, network_, pipeline_}, hooks_);
}

// Is there nothing left to train?
template <class Space>
bool TrainerOn<Space>::done() const {
  return is_done(job_.config.train, cursor_, evaluations_without_gain_);
}

template <class Space>
TrainingResult TrainerOn<Space>::train(const TrainingProgress& progress) {
  try {
    train_epochs(progress);
  } catch (const UserError&) {
    if (!result_.diverged) throw;
  }
  if (result_.interrupted) return result_;
  result_.stopped_early = !result_.diverged && cursor_.epoch <= job_.config.train.epochs;
  return result();
}

template <class Space>
TrainingResult TrainerOn<Space>::result() {
  time_of_steps_.reset();
  pipeline_.leave();
  restore_best();
  result_.confusion = whole_confusion("report");
  return result_;
}

template <class Space>
void TrainerOn<Space>::train_epochs(const TrainingProgress& progress) {
  while (!done()) {
    begin_epoch();
    const auto steps = pipeline_.plan().steps();
    while (cursor_.step < steps) {
      step();
      if (progress.on_step) progress.on_step(cursor_.epoch, cursor_.step, steps);
      if (!goes_on(progress, steps, true)) return;
    }
    end_steps();
    if (is_evaluated() && !evaluate_epoch(progress, *report_)) return;
    const auto report = take_report();
    if (progress.on_epoch) progress.on_epoch(report);
    cursor_ = {cursor_.epoch + 1, 0};
    if (!goes_on(progress, 0, false)) return;
  }
}

template <class Space>
bool TrainerOn<Space>::is_evaluated() const {
  const auto& train = job_.config.train;
  return cursor_.epoch == train.epochs || (train.eval_every > 0 && cursor_.epoch % train.eval_every == 0);
}

template <class Space>
EpochReport TrainerOn<Space>::take_report() {
  finish_epoch_report(grid_, timers_, kTrainStages, *report_);
  auto report = std::move(*report_);
  report_.reset();
  return report;
}

template <class Space>
EpochReport TrainerOn<Space>::end_epoch() {
  ESPALIER_CHECK(report_ && cursor_.step == pipeline_.plan().steps(), "an epoch ends after its steps, not {}",
                 cursor_.step);
  end_steps();
  if (is_evaluated()) evaluate_epoch({}, *report_);
  auto report = take_report();
  cursor_ = {cursor_.epoch + 1, 0};
  return report;
}

template <class Space>
void TrainerOn<Space>::diverge(const char* what, std::int64_t step, const std::string& detail) {
  const auto epoch = cursor_.epoch - (step == 0 && cursor_.step == 0 ? 1 : 0);
  result_.diverged = {
      what, epoch, step,
      fmt::format("the {} is not finite in epoch {}{}{}; {}", what, epoch,
                  step > 0 ? fmt::format(", step {}", step) : "",
                  detail.empty() ? "" : fmt::format(" ({})", detail), remedy_for_divergence(job_.config))};
  throw UserError(ExitCode::kDiverged, result_.diverged->words);
}

// What is left of the cursor's epoch begins.
template <class Space>
void TrainerOn<Space>::begin_epoch() {
  timers_.clear();
  grid_.traffic().clear();
  report_.emplace();
  report_->epoch = cursor_.epoch;
  report_->resumed_step = cursor_.step;
  edges_done_ = rows_done_ = remote_rows_done_ = 0;
  for (const auto& hook : hooks_) hook->clear_counters();
  time_of_steps_.emplace(timers_, "total");
  pipeline_.enter(cursor_);
  take_up_losses(pipeline_.plan());
}

template <class Space>
bool TrainerOn<Space>::step() {
  ESPALIER_CHECK(!done() || report_, "training is done{}", "");
  if (!report_) begin_epoch();
  const auto& plan = pipeline_.plan();
  if (cursor_.step == plan.steps()) return false;
  note_step(cursor_.epoch, cursor_.step + 1, plan.steps());
  const auto work = pipeline_.next(inputs_, edges_);
  train_step(plan, cursor_.step, work);
  note_work(work);
  return ++cursor_.step < plan.steps();
}

// What the steps of an epoch came to.
template <class Space>
void TrainerOn<Space>::end_steps() {
  const auto& plan = pipeline_.plan();
  auto& report = *report_;
  // What comes next, evaluation or the next epoch, needs the grid or the window that is under way.
  pipeline_.wait_for_sampling();
  if (grid_.ranks() > 1)
    report.work_balance = work_balance_of(grid_.world(), edges_done_, rows_done_, remote_rows_done_);
  report.counts = sum_over_ranks(pipeline_.counts_of_epoch(), grid_.world());
  report.counts.add(restored_counts_);
  report.counters = counters_of_done();
  const auto next = step_of_job(cursor_, plan.steps());
  for (const auto& hook : hooks_) hook->report(space_, next, report);
  const auto losses = copy_from(space_, losses_);
  clock_.collect();
  report.loss = reproducible_sum(grid_.world(), {losses.begin(), losses.end()}) /
                job_.task.weight(plan, 0, plan.batches());
  restored_losses_.clear();
  restored_counts_ = {};
  restored_counters_ = {};
  time_of_steps_.reset();
  if (copy_from(space_, diverged_)[0] != 0) diverge("gradient");
  if (!std::isfinite(*report.loss)) diverge("loss");
}

template <class Space>
void TrainerOn<Space>::note_work(const TrainingStepOn<Space>& step) {
  for (const auto& minibatch : step.minibatches) {
    edges_done_ += minibatch.sampled_edges();
    rows_done_ += std::ssize(minibatch.vertices);
  }
  remote_rows_done_ += step.remote_rows;
}

// Of the job, the first that has not ended.
template <class Space>
std::int64_t TrainerOn<Space>::next_step() const {
  return step_of_job(cursor_, plan_of_epoch(steps_of(job_), cursor_.epoch).steps());
}

// Asks what comes next, and saves where that is the answer; false: stop.
template <class Space>
bool TrainerOn<Space>::goes_on(const TrainingProgress& progress, std::int64_t steps, bool within_epoch) {
  if (!progress.next) return true;
  const Next next = progress.next(cursor_, steps, steps == 0 && done());
  if (next == Next::kGoOn) return true;
  if (progress.save) progress.save(state(within_epoch));
  if (next == Next::kSave) return true;
  time_of_steps_.reset();
  pipeline_.leave();
  result_.interrupted = cursor_;
  return false;
}

template <class Space>
void TrainerOn<Space>::train_step(const EpochPlan& plan, std::int64_t step,
                                  const TrainingStepOn<Space>& work) {
  using Scope = typename StageClock<Space>::Scope;
  const auto begin = plan.step_begin(step), end = plan.step_end(step);
  const double weight = job_.task.weight(plan, begin, end), scale = weight > 0 ? 1.0 / weight : 0.0;
  for (std::size_t m = 0; m < work.minibatches.size(); ++m) run_minibatch(work, m, plan, end - begin, scale);
  {
    const Scope time(clock_, kFetch);
    for (const auto& hook : hooks_) hook->end(space_, work.number);
  }
  {
    const Scope time(clock_, "reduce");
    reduction_.finish(end - begin, gradients_);
    if (note_divergence(space_, gradients_, diverged_.data())) diverge("gradient", step + 1);
    for (const auto& hook : hooks_) hook->reduced(space_, end - begin, gradients_);
  }
  const Scope time(clock_, kOptimizer);
  optimizer_.step(space_, rate_of_epoch(job_.config.train, job_.config.train.learning_rate, cursor_.epoch),
                  gradients_, network_.parameters());
  for (const auto& hook : hooks_) hook->update(space_, cursor_.epoch, network_);
}

template <class Space>
void TrainerOn<Space>::run_minibatch(const TrainingStepOn<Space>& work, std::size_t number,
                                     const EpochPlan& plan, std::int64_t of_step, double scale) {
  using Scope = typename StageClock<Space>::Scope;
  const auto& minibatch = work.minibatches[number];
  std::vector<const Matrix<float, Space>*> rows;
  for (const auto& table : inputs_) rows.push_back(&table[number]);
  MinibatchPassOn<Space> joining = {.step = work.number, .place = number, .minibatch = minibatch};
  joining.row_gradients.resize(rows.size(), nullptr);
  if (!work.rows_read.empty()) joining.rows_read = &work.rows_read[number];
  for (const auto& hook : hooks_) hook->join(joining);
  const InputRows<float, Space> input(std::move(rows));
  const Pass pass = {plan.seed(), plan.epoch(), static_cast<std::uint64_t>(minibatch.number)};
  {
    const Scope time(clock_, "forward");
    const auto& logits = network_.forward(space_, minibatch.blocks, input, pass, joining.joined);
    const auto own = network_.task_tensors();
    job_.task.loss(space_, plan, minibatch.number, logits, {own, std::span(gradients_).last(own.size())},
                   scale, loss_gradient_, losses_.data() + losses_count_++);
    plan.examples().release(minibatch.number);
  }
  pipeline_.progress();  // many MPI libraries move messages only when they are called
  {
    const Scope time(clock_, "backward");
    // Of the last one what is there of the step's sum travels meanwhile.
    std::function<void(std::size_t)> has_groups;
    if (reduction_.in_pieces() && number + 1 == work.minibatches.size())
      has_groups = [&](std::size_t groups) { reduction_.add_groups(gradients_, groups, of_step); };
    network_.backward(space_, minibatch.blocks, input, pass, loss_gradient_, gradients_,
                      InputGradients<float, Space>(joining.row_gradients), has_groups);
    for (const auto& hook : hooks_) hook->note(space_, joining, network_);
    if (!has_groups) reduction_.add(gradients_, number + 1 == work.minibatches.size());
  }
  pipeline_.progress();
}

// False when `progress` asked to stop before its end.
template <class Space>
bool TrainerOn<Space>::evaluate_epoch(const TrainingProgress& progress, EpochReport& report) {
  const StageTimers::Scope time(timers_, "evaluate");
  pipeline_.lend_memory_of_disk();
  for (const auto& hook : hooks_) hook->before_evaluation(space_, network_);
  const auto result = evaluate(progress.goes_on);
  if (job_.ahead != nullptr) grid_.traffic().take_over(job_.ahead->world.traffic());
  if (result) note_evaluation(*result, report);
  for (const auto& hook : hooks_) hook->after_evaluation(space_, network_);
  if (!result) save_unevaluated(progress, report);
  return result.has_value();
}

template <class Space>
std::optional<Evaluation> TrainerOn<Space>::evaluate(const std::function<bool()>& goes_on) {
  try {
    return job_.evaluator.evaluate(space_, network_, goes_on);
  } catch (const UserError& error) {
    if (error.code() == ExitCode::kDiverged) diverge("evaluation", 0, error.what());
    throw;
  }
}

template <class Space>
Evaluation TrainerOn<Space>::evaluate_now() {
  rest();
  pipeline_.lend_memory_of_disk();
  for (const auto& hook : hooks_) hook->before_evaluation(space_, network_);
  const auto result = *evaluate({});
  for (const auto& hook : hooks_) hook->after_evaluation(space_, network_);
  return result;
}

// Are these the best weights so far? Then they are kept.
template <class Space>
void TrainerOn<Space>::note_evaluation(const Evaluation& evaluation, EpochReport& report) {
  if (evaluation.train.vertices > 0) report.train = evaluation.train;
  if (evaluation.valid.vertices > 0) report.valid = evaluation.valid;
  const bool evaluated = evaluation.valid.vertices > 0;
  const double metric = evaluation.valid.find(metric_of(job_.config.train).name).value_or(0);
  const bool better = !evaluated || metric > best_metric_;
  evaluations_without_gain_ = better ? 0 : evaluations_without_gain_ + 1;
  if (!better) return;
  keep_best();
  best_metric_ = metric;
  result_.best_epoch = report.epoch;
  if (evaluation.test.vertices > 0) {
    result_.test = evaluation.test;
    confusion_ = evaluation.confusion;
  }
}

// Collective.
template <class Space>
std::vector<std::int64_t> TrainerOn<Space>::whole_confusion(std::string_view label) const {
  auto counts = confusion_;
  if (counts.empty()) return counts;  // on every rank
  grid_.world().all_reduce(std::span<std::int64_t>(counts), Reduction::kSum, label);
  return counts;
}

// Collective. Weights leave in files when they are the best, and in checkpoints.
template <class Space>
void TrainerOn<Space>::check_weights() {
  std::string bad;
  for (const auto& place : weights())
    if (first_not_finite(space_, place.tensor->data.data(), place.tensor->rows * place.tensor->columns) >= 0)
      bad = place.name;
  std::vector<StateTensor> rows;
  for (const auto& hook : hooks_) hook->weights(space_, /*best=*/false, rows);
  for (const auto& tensor : rows)
    tensor.for_each_piece_of_mine([&](RowRange, const Buffer<float>& numbers) {
      if (first_not_finite(Cpu{}, numbers.data(), std::ssize(numbers)) >= 0) bad = tensor.name;
    });
  try {
    agree(grid_.world(), [&] {
      if (!bad.empty()) throw UserError(ExitCode::kDiverged, bad);
    });
  } catch (const UserError& error) {
    diverge("weight", cursor_.step, error.what());
  }
}

// Each rank keeps the rows that it saves.
template <class Space>
void TrainerOn<Space>::keep_best() {
  check_weights();
  for (const auto& hook : hooks_) hook->keep_best(space_);
  best_.clear();
  for (const auto& place : weights()) {
    const auto& tensor = *place.tensor;
    const auto rows = rows_to_save(tensor.rows);
    auto& kept = best_.emplace_back(static_cast<std::size_t>(rows.size() * tensor.columns));
    copy_from(space_, tensor.row(rows.begin), std::ssize(kept), kept.data());
  }
}

// Collective.
template <class Space>
void TrainerOn<Space>::restore_best() {
  if (best_.empty()) return;
  auto from = best_.begin();
  for (const auto& place : weights()) {
    const auto all = grid_.world().all_gather_v(std::span<const float>(*from++), "best weights");
    copy_to(space_, all.data(), std::ssize(all), place.tensor->data.data());
  }
  for (const auto& hook : hooks_) hook->restore_best(space_);
}

}  // namespace espalier
