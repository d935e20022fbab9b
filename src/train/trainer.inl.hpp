// What TrainerOn does, for every space: trainer.cpp and trainer.cu instantiate it, with
// trainer_restart.inl.hpp, which leaves it and goes on with it. The few leaves that only training
// needs are declared here and defined there.
#pragma once

#include <array>
#include <cmath>
#include <utility>

#include "espalier/base/arrays.hpp"
#include "espalier/base/whereabouts.hpp"
#include "espalier/train/divergence.hpp"
#include "espalier/train/learning_rate.hpp"
#include "espalier/train/network_tensors.hpp"
#include "espalier/train/trainer.hpp"
#include "step_pipeline.inl.hpp"

namespace espalier {

// Memory of the host to memory of the space, and back.
template <class T>
void to_space(const Cpu&, std::span<const T> from, Buffer<T>& to) {
  to.assign(from.begin(), from.end());
}
template <class T>
void to_space(const Cuda&, std::span<const T> from, DeviceArray<T>& to);
template <class T>
Buffer<T> to_host(const Cpu&, const Buffer<T>& from) {
  return from;
}
template <class T>
Buffer<T> to_host(const Cuda&, const DeviceArray<T>& from);

// Notes in *flag when a number is not finite, and returns true when the flag is known to be set. A
// GPU is not asked inside of an epoch.
bool note_divergence(const Cpu&, const std::vector<Matrix<float>>& gradients, int* flag);
bool note_divergence(const Cuda&, const std::vector<Matrix<float, Cuda>>& gradients, int* flag);

inline OptimizerOptions optimizer_of(const TrainConfig& train) {
  return {.kind = train.optimizer,
          .momentum = train.momentum,
          .weight_decay = train.weight_decay,
          .weight_decay_on = train.weight_decay_on};
}

inline LearningRateSchedule schedule_of(const TrainConfig& train, double base) {
  return {.kind = train.lr_schedule,
          .base = base,
          .epochs = train.epochs,
          .warmup = train.lr_warmup,
          .every = train.lr_step,
          .factor = train.lr_decay};
}

// The stage of an epoch that changes weights, embeddings too.
inline constexpr const char* kOptimizer = "optimizer";
// What the change of embeddings moves is booked beside what brought them.
inline constexpr const char* kUpdate = "fetch/update";

// How many batches of an epoch a rank keeps.
inline std::int64_t batches_of(const EpochPlan& plan, int rank) {
  std::int64_t count = 0;
  for (std::int64_t batch = 0; batch < plan.batches(); ++batch) count += plan.rank_of(batch) == rank;
  return count;
}

[[noreturn]] inline void refuse_divergence(std::uint64_t epoch, const Config& config) {
  usage_error("the loss is not finite in epoch {}; {}", epoch, remedy_for_divergence(config));
}

template <class Matrix, class Matrices>
std::vector<Matrix*> pointers_to(Matrices& matrices) {
  std::vector<Matrix*> pointers;
  for (auto& matrix : matrices) pointers.push_back(&matrix);
  return pointers;
}

template <class Space>
TrainerOn<Space>::TrainerOn(const Space& space, const TrainingJobOn<Space>& job)
    : space_(space),
      job_(job),
      grid_(job.grid.host()),
      network_(space,
               network_shape(job.config.model,
                             job.input_shape.width == 0 ? InputShape(job.input.width()) : job.input_shape,
                             job.task.outputs()),
               static_cast<std::uint64_t>(job.config.train.seed)),
      optimizer_(space, optimizer_of(job.config.train), network_.parameters()),
      reduction_(space, job.grid.world(), job.config.train.reproducible),
      statistics_(space, job.grid.world(), job.config.train.reproducible),
      history_(job.config.history.kind == "none" ? nullptr
                                                 : std::make_unique<TrainingHistoryOn<Space>>(
                                                       job_.grid, job_.config, job_.batches_per_step)),
      clock_(space, timers_),
      pipeline_(
          space, job_,
          [this](const MinibatchOn<Space>& minibatch) {
            return gathers_by_itself(minibatch) ? minibatch.blocks[0].rows : std::ssize(minibatch.vertices);
          },
          history_.get(), clock_) {
  for (const auto& parameter : network_.parameters())
    gradients_.emplace_back(parameter.value.rows, parameter.value.columns);
  for (const auto& statistic : network_.running_statistics())
    mean_statistics_.emplace_back(statistic.rows, statistic.columns);
  to_space<int>(space, std::vector<int>{0}, diverged_);
}

// Is there nothing left to train?
template <class Space>
bool TrainerOn<Space>::done() const {
  const auto& train = job_.config.train;
  return cursor_.epoch > train.epochs ||
         (train.early_stop > 0 && evaluations_without_gain_ >= train.early_stop && cursor_.step == 0);
}

template <class Space>
TrainingResult TrainerOn<Space>::train(const TrainingProgress& progress) {
  const auto& train = job_.config.train;
  while (!done()) {
    EpochReport report;
    report.epoch = cursor_.epoch;
    if (!train_epoch(progress, report)) return result_;
    const bool due =
        cursor_.epoch == train.epochs || (train.eval_every > 0 && cursor_.epoch % train.eval_every == 0);
    if (due && !evaluate_epoch(progress, report)) return result_;
    finish_epoch_report(grid_, timers_, kTrainStages, report);
    if (progress.on_epoch) progress.on_epoch(report);
    cursor_ = {cursor_.epoch + 1, 0};
    if (!goes_on(progress, 0, false)) return result_;
  }
  result_.stopped_early = cursor_.epoch <= train.epochs;
  pipeline_.leave();
  restore_best();
  result_.confusion = whole_confusion("report");
  return result_;
}

// Trains what is left of the cursor's epoch; false when `progress` asked to stop.
template <class Space>
bool TrainerOn<Space>::train_epoch(const TrainingProgress& progress, EpochReport& report) {
  const auto& config = job_.config;
  timers_.clear();
  grid_.traffic().clear();
  report.resumed_step = cursor_.step;
  edges_done_ = rows_done_ = remote_rows_done_ = cached_rows_done_ = 0;
  history_counts_ = {};
  saved_ = {};
  const StageTimers::Scope time(timers_, "total");

  pipeline_.enter(cursor_);
  const auto& plan = pipeline_.plan();
  take_up_losses(plan);
  while (cursor_.step < plan.steps()) {
    note_step(cursor_.epoch, cursor_.step + 1, plan.steps());
    const auto step = pipeline_.next(inputs_, edges_);
    train_step(plan, cursor_.step, step);
    note_work(step);
    ++cursor_.step;
    if (progress.on_step) progress.on_step(cursor_.epoch, cursor_.step, plan.steps());
    if (!goes_on(progress, plan.steps(), true)) return false;
  }

  // What comes next, evaluation or the next epoch, needs the grid or the window that is under way.
  pipeline_.wait_for_sampling();
  if (grid_.ranks() > 1)
    report.dealing = dealing_of(grid_.world(), edges_done_, rows_done_, remote_rows_done_);
  report.counts = sum_over_ranks(pipeline_.counts_of_epoch(), grid_.world());
  report.counts.add(restored_counts_);
  if (history_) {
    report.history = history_of_done();
    report.held =
        count_held(grid_.world(), history_->held(space_, step_of_job(cursor_, plan.steps()), nullptr));
  }
  if (memory_of(config.history) > 0) report.feature_cache = feature_cache_of_done();
  if (const auto saved = saved_of_done(); history_ || report.feature_cache || saved.any())
    report.saved = saved;
  const auto losses = to_host(space_, losses_);
  clock_.collect();
  report.loss = reproducible_sum(grid_.world(), {losses.begin(), losses.end()}) /
                job_.task.weight(plan, 0, plan.batches());
  restored_losses_.clear();
  restored_counts_ = {};
  restored_history_ = {};
  restored_saved_ = {};
  if (!std::isfinite(*report.loss) || to_host(space_, diverged_)[0] != 0)
    refuse_divergence(plan.epoch(), config);
  return true;
}

// Collective.
template <class Space>
FeatureCacheCounts TrainerOn<Space>::feature_cache_of_done() const {
  std::array<std::int64_t, 2> sums = {remote_rows_done_ + cached_rows_done_, cached_rows_done_};
  grid_.world().all_reduce(std::span<std::int64_t>(sums), Reduction::kSum, "report");
  std::array<std::int64_t, 2> bytes = {pipeline_.cached_bytes(), history_ ? history_->bytes() : 0};
  grid_.world().all_reduce(std::span<std::int64_t>(bytes), Reduction::kMax, "report");
  return {sums[0], sums[1], bytes[0], bytes[1]};
}

template <class Space>
void TrainerOn<Space>::note_work(const TrainingStepOn<Space>& step) {
  for (const auto& minibatch : step.minibatches) {
    edges_done_ += minibatch.sampled_edges();
    rows_done_ += std::ssize(minibatch.vertices);
  }
  remote_rows_done_ += step.remote_rows;
  cached_rows_done_ += step.cached_rows;
  history_counts_.add(step.pruned.counts);
  saved_.add(step.saved);
}

// Asks what comes next, and saves where that is the answer; false: stop.
template <class Space>
bool TrainerOn<Space>::goes_on(const TrainingProgress& progress, std::int64_t steps, bool within_epoch) {
  if (!progress.next) return true;
  const Next next = progress.next(cursor_, steps, steps == 0 && done());
  if (next == Next::kGoOn) return true;
  if (progress.save) progress.save(state(within_epoch));
  if (next == Next::kSave) return true;
  pipeline_.leave();
  result_.interrupted = cursor_;
  return false;
}

// Can the first layer read the rows where they lie? Then only those of its destinations
// are fetched.
template <class Space>
bool TrainerOn<Space>::gathers_by_itself(const MinibatchOn<Space>& minibatch) const {
  return job_.input.all_near() && network_.aggregates_input(minibatch.blocks[0]);
}

template <class Space>
void TrainerOn<Space>::train_step(const EpochPlan& plan, std::int64_t step,
                                  const TrainingStepOn<Space>& work) {
  const auto begin = plan.step_begin(step), end = plan.step_end(step);
  const double weight = job_.task.weight(plan, begin, end), scale = weight > 0 ? 1.0 / weight : 0.0;
  for (std::size_t m = 0; m < work.minibatches.size(); ++m) run_minibatch(work, m, plan, scale, end - begin);
  if (const auto number = step_of_job(plan, step); history_ && history_->works(number)) {
    const typename StageClock<Space>::Scope time(clock_, kFetch);
    history_->end(space_, number, kHistory);
  }
  {
    const typename StageClock<Space>::Scope time(clock_, "reduce");
    reduction_.finish(end - begin, pointers_to<Matrix<float, Space>>(gradients_));
    if (!mean_statistics_.empty())
      statistics_.finish(end - begin, pointers_to<Matrix<float, Space>>(mean_statistics_));
  }
  if (note_divergence(space_, gradients_, diverged_.data()))  // on every rank
    refuse_divergence(plan.epoch(), job_.config);
  const auto& train = job_.config.train;
  const auto rate = [&](double base) { return learning_rate(schedule_of(train, base), cursor_.epoch - 1); };
  {
    const typename StageClock<Space>::Scope time(clock_, kOptimizer);
    optimizer_.step(space_, rate(train.learning_rate), gradients_, network_.parameters());
    if (!mean_statistics_.empty()) network_.update_running_statistics(space_, mean_statistics_);
  }
  if (job_.input.embeddings() != nullptr) update_embeddings(work, rate(train.embedding_rate));
}

template <class Space>
void TrainerOn<Space>::update_embeddings(const TrainingStepOn<Space>& work, double rate) {
  const typename StageClock<Space>::Scope time(clock_, kOptimizer);
  std::vector<std::span<const std::int64_t>> lists;
  std::vector<std::int64_t> batches;
  for (std::size_t m = 0; m < work.minibatches.size(); ++m) {
    const auto& minibatch = work.minibatches[m];
    batches.push_back(minibatch.number);
    if (work.embedded.empty())
      lists.push_back(minibatch.vertices);
    else
      lists.emplace_back(work.embedded[m].data(), work.embedded[m].size());
  }
  job_.input.embeddings()->update(space_, rate, lists, batches, embedding_gradients_, kUpdate);
}

template <class Space>
void TrainerOn<Space>::run_minibatch(const TrainingStepOn<Space>& work, std::size_t number,
                                     const EpochPlan& plan, double scale, std::int64_t batches) {
  const auto& minibatch = work.minibatches[number];
  std::vector<const Matrix<float, Space>*> rows;
  for (const auto& table : inputs_) rows.push_back(&table[number]);
  std::vector<Matrix<float, Space>*> row_gradients(rows.size(), nullptr);
  if (job_.input.embeddings() != nullptr) {
    if (embedding_gradients_.size() <= number) embedding_gradients_.resize(number + 1);
    row_gradients.back() = &embedding_gradients_[number];
  }
  const InputRows<float, Space> input(std::move(rows));
  HistoryRows<float, Space> history;
  if (!work.pruned.empty())
    history = {work.pruned.pruned[number].layers, work.pruned.cached[number], work.pruned.recomputed[number],
               history_->recomputed_weight()};
  const Pass pass = {plan.seed(), plan.epoch(), static_cast<std::uint64_t>(minibatch.number)};
  {
    const typename StageClock<Space>::Scope time(clock_, "forward");
    const bool gathers = gathers_by_itself(minibatch);
    if (gathers)
      job_.input.table(0).aggregate(space_, minibatch.blocks[0], minibatch.vertices,
                                    network_.input_aggregate());
    const auto& logits = network_.forward(space_, minibatch.blocks, input, pass,
                                          gathers ? InputForm::kAggregated : InputForm::kRows,
                                          work.pruned.empty() ? nullptr : &history);
    job_.task.loss(space_, plan, minibatch.number, logits, scale, loss_gradient_,
                   losses_.data() + losses_count_++);
  }
  pipeline_.progress();  // many MPI libraries move messages only when they are called
  {
    const typename StageClock<Space>::Scope time(clock_, "backward");
    network_.backward(space_, minibatch.blocks, input, pass, loss_gradient_, gradients_,
                      InputGradients<float, Space>(std::move(row_gradients)));
    if (!work.pruned.empty())
      history_->note(space_, step_of_job(plan, cursor_.step), work.pruned.pruned[number],
                     work.pruned.recomputed[number], network_, history_counts_);
    reduction_.add(pointers_to<const Matrix<float, Space>>(std::as_const(gradients_)));
    if (!mean_statistics_.empty())
      statistics_.add(pointers_to<const Matrix<float, Space>>(network_.batch_statistics()),
                      1.0f / static_cast<float>(batches));
  }
  pipeline_.progress();
}

// False when `progress` asked to stop before its end.
template <class Space>
bool TrainerOn<Space>::evaluate_epoch(const TrainingProgress& progress, EpochReport& report) {
  const StageTimers::Scope time(timers_, "evaluate");
  auto hidden = hidden_to_audit();
  std::vector<RowSinkOn<Space>*> sinks;
  for (auto& layer : hidden) sinks.push_back(layer ? &*layer : nullptr);
  const auto result = job_.evaluator.evaluate(space_, network_, progress.goes_on, sinks);
  if (job_.sampling_grid != nullptr) grid_.traffic().take_over(job_.sampling_grid->traffic());
  if (!result) {
    save_unevaluated(progress, report);
    return false;
  }
  const auto& evaluation = *result;
  if (!hidden.empty()) report.held = audit(hidden);
  report.train = evaluation.train;
  if (evaluation.valid.vertices > 0) report.valid = evaluation.valid;
  const bool judged = evaluation.valid.vertices > 0;
  const double metric = evaluation.valid.find(metric_of(job_.config.train).name).value_or(0);
  const bool better = !judged || metric > best_metric_;
  evaluations_without_gain_ = better ? 0 : evaluations_without_gain_ + 1;
  if (!better) return true;
  best_metric_ = metric;
  result_.best_epoch = report.epoch;
  if (evaluation.test.vertices > 0) {
    result_.test = evaluation.test;
    confusion_ = evaluation.confusion;
  }
  keep_best();
  return true;
}

// Of the layers that history keeps, where it is to be audited; of the others nothing.
template <class Space>
HiddenRowsOn<Space> TrainerOn<Space>::hidden_to_audit() const {
  HiddenRowsOn<Space> hidden;
  if (!history_ || !job_.config.history.audit) return hidden;
  hidden.resize(static_cast<std::size_t>(network_.shape().layers - 1));
  const auto rows = job_.evaluator.shares().size(grid_.world().rank());
  for (const int layer : history_->shape().layers) hidden[layer - 1].emplace(rows, history_->shape().width);
  return hidden;
}

// Collective.
template <class Space>
std::vector<HeldHistory> TrainerOn<Space>::audit(HiddenRowsOn<Space>& hidden) {
  std::vector<Matrix<float>> exact(hidden.size() + 1);
  for (std::size_t l = 0; l < hidden.size(); ++l) {
    if (!hidden[l]) continue;
    const auto rows = hidden[l]->release();
    exact[l + 1] = Matrix<float>(rows.rows, rows.columns);
    exact[l + 1].data = copy_from(space_, rows.data);
  }
  Matrix<float> rows;
  const auto steps = plan_of_epoch(job_, cursor_.epoch).steps();
  const auto held = history_->held(space_, step_of_job(cursor_, steps), &rows);
  return audit_held(grid_.world(), held, rows, job_.evaluator.shares(), exact, "evaluate");
}

// Collective.
template <class Space>
std::vector<std::int64_t> TrainerOn<Space>::whole_confusion(std::string_view label) const {
  auto counts = confusion_;
  if (counts.empty()) return counts;  // on every rank
  grid_.world().all_reduce(std::span<std::int64_t>(counts), Reduction::kSum, label);
  return counts;
}

template <class Space>
std::uint64_t TrainerOn<Space>::weights_digest() const {
  return espalier::weights_digest(space_, network_, job_.input.embeddings());
}

template <class Space>
std::vector<StateTensor> TrainerOn<Space>::embeddings() const {
  if (job_.input.embeddings() == nullptr) return {};
  auto tensors = job_.input.embeddings()->state(space_);
  std::erase_if(tensors, [](const StateTensor& tensor) { return !tensor.name.starts_with("weights/"); });
  return tensors;
}

// Each rank keeps the rows that it saves.
template <class Space>
void TrainerOn<Space>::keep_best() {
  if (const auto* const embeddings = job_.input.embeddings())
    best_embeddings_ = embeddings->kept_rows(space_);
  best_.clear();
  for (const auto& place : weights_and_statistics()) {
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
  for (const auto& place : weights_and_statistics()) {
    const auto all = grid_.world().all_gather_v(std::span<const float>(*from++), "best weights");
    to_space<float>(space_, all, place.tensor->data);
  }
  if (auto* const embeddings = job_.input.embeddings())
    embeddings->put_back(space_, best_embeddings_, "best weights");
}

}  // namespace espalier
