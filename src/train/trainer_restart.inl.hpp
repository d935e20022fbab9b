// How TrainerOn gives its state away between two steps and goes on from one: training_state.hpp
// says what belongs to it.
#pragma once

#include <algorithm>
#include <string_view>

#include "espalier/comm/communicator.hpp"
#include "trainer.inl.hpp"

namespace espalier {

// The best epoch's are kept of these.
template <class Space>
std::vector<TensorPlaceOn<Space>> TrainerOn<Space>::weights() {
  std::vector<Place> all;
  for (auto& parameter : network_.parameters())
    all.push_back({"weights/" + parameter.name, &parameter.value});
  for (const auto& hook : hooks_)
    for (auto& place : hook->tensors(network_))
      if (place.of_weights) all.push_back(std::move(place));
  return all;
}

template <class Space>
std::vector<TensorPlaceOn<Space>> TrainerOn<Space>::other_tensors() {
  std::vector<Place> all;
  for (auto& state : optimizer_.state()) all.push_back({"optimizer/" + state.name, &state.value});
  for (const auto& hook : hooks_)
    for (auto& place : hook->tensors(network_))
      if (!place.of_weights) all.push_back(std::move(place));
  return all;
}

// All ranks have the same tensors, and each saves some rows of them.
template <class Space>
RowRange TrainerOn<Space>::rows_to_save(std::int64_t rows) const {
  return even_range(rows, grid_.world().size(), grid_.world().rank());
}

template <class Space>
StateTensor TrainerOn<Space>::state_of(const Place& place) const {
  const auto* const tensor = place.tensor;
  return {place.name,
          tensor->rows,
          tensor->columns,
          {rows_to_save(tensor->rows)},
          [this, tensor](RowRange rows, float* to) {
            copy_from(space_, tensor->row(rows.begin), rows.size() * tensor->columns, to);
          }};
}

// The tensor of the best epoch: best_ has the rows that this rank saves.
template <class Space>
StateTensor TrainerOn<Space>::state_of_best(const Place& place, std::size_t k) const {
  auto state = state_of(place);
  state.name = "best/" + state.name;
  state.read = [kept = best_[k].data(), first = state.mine[0].begin, columns = state.columns](RowRange rows,
                                                                                              float* to) {
    std::copy_n(kept + (rows.begin - first) * columns, rows.size() * columns, to);
  };
  return state;
}

// Collective. The tensors are read from where they are: the state is valid until the next step.
template <class Space>
TrainingState TrainerOn<Space>::state(bool within_epoch) {
  if (copy_from(space_, diverged_)[0] != 0) diverge("gradient");
  check_weights();
  TrainingState state;
  state.cursor = cursor_;
  const auto places = weights();
  for (const auto& place : places) state.tensors.push_back(state_of(place));
  for (std::size_t k = 0; k < best_.size(); ++k) state.tensors.push_back(state_of_best(places[k], k));
  for (const auto& place : other_tensors()) state.tensors.push_back(state_of(place));
  for (const auto& hook : hooks_) hook->state(space_, next_step(), !best_.empty(), state.tensors);
  state.optimizer_steps = optimizer_.steps();
  state.best_metric = best_metric_;
  state.best_epoch = result_.best_epoch;
  state.evaluations_without_gain = evaluations_without_gain_;
  state.test = result_.test;
  state.confusion = whole_confusion("checkpoint");
  if (!within_epoch) return state;
  state.losses = losses_of_done(pipeline_.plan());
  state.counts = sum_over_ranks(pipeline_.counts_of_taken(), grid_.world());
  state.counts.add(restored_counts_);
  state.counters = counters_of_done().sums();
  return state;
}

template <class Space>
TrainingState TrainerOn<Space>::best() {
  TrainingState state;
  state.best_epoch = result_.best_epoch;
  if (state.best_epoch == 0) return state;
  const auto places = weights();
  for (std::size_t k = 0; k < best_.size(); ++k) state.tensors.push_back(state_of_best(places[k], k));
  for (const auto& hook : hooks_) hook->weights(space_, /*best=*/true, state.tensors);
  return state;
}

// Collective. What the parts of steps have counted.
template <class Space>
Counters TrainerOn<Space>::counters_of_done() {
  Counters mine;
  for (const auto& hook : hooks_) mine.add(hook->counters());
  auto counters = over_ranks(mine, grid_.world());
  counters.add_sums(restored_counters_);
  return counters;
}

// Collective.
template <class Space>
std::vector<double> TrainerOn<Space>::losses_of_done(const EpochPlan& plan) {
  const auto mine = copy_from(space_, losses_);
  std::vector<double> losses(
      static_cast<std::size_t>(cursor_.step < plan.steps() ? plan.step_begin(cursor_.step) : plan.batches()));
  std::size_t next = 0;
  for (std::size_t batch = 0; batch < losses.size(); ++batch)
    if (plan.rank_of(static_cast<std::int64_t>(batch)) == grid_.world().rank()) losses[batch] = mine[next++];
  // One rank has each.
  grid_.world().all_reduce(std::span<double>(losses), Reduction::kSum, "checkpoint");
  return losses;
}

// All steps of the epoch are done, its evaluation is not.
template <class Space>
void TrainerOn<Space>::save_unevaluated(const TrainingProgress& progress, const EpochReport& report) {
  auto unevaluated = state(false);
  unevaluated.losses = losses_of_done(pipeline_.plan());
  unevaluated.counts = report.counts;
  unevaluated.counters = report.counters.sums();
  if (progress.save) progress.save(unevaluated);
  pipeline_.leave();
  result_.interrupted = cursor_;
}

// Not collective.
template <class Space>
void TrainerOn<Space>::restore_tensors(const TrainingState& state, std::vector<std::string>& missing) {
  SavedTensors tensors(state.tensors);
  const auto take = [&](const std::string& prefix, const Place& place) -> const StateTensor& {
    return tensors.take(prefix + place.name, place.tensor->rows, place.tensor->columns,
                        place.former_name.empty() ? std::string() : prefix + place.former_name);
  };
  auto places = weights();
  best_.clear();
  if (state.best_epoch > 0)
    for (const auto& place : places) {
      const auto& tensor = take("best/", place);
      const auto rows = rows_to_save(tensor.rows);
      auto& kept = best_.emplace_back(static_cast<std::size_t>(rows.size() * tensor.columns));
      if (!kept.empty()) tensor.read(rows, kept.data());
    }
  for (auto& place : other_tensors()) places.push_back(place);
  for (const auto& place : places) {
    if (place.may_be_missing && !tensors.has(place.name)) continue;
    const auto all = take("", place).all();
    copy_to(space_, all.data(), std::ssize(all), place.tensor->data.data());
  }
  const auto next = step_of_job(state.cursor, plan_of_epoch(steps_of(job_), state.cursor.epoch).steps());
  for (const auto& hook : hooks_)
    if (auto words = hook->restore(space_, next, state.best_epoch > 0, tensors); !words.empty())
      missing.push_back(std::move(words));
  tensors.check_all_taken();
}

template <class Space>
std::vector<std::string> TrainerOn<Space>::restore(const TrainingState& state) {
  std::vector<std::string> missing;
  agree(grid_.world(), [&] { restore_tensors(state, missing); });
  optimizer_.set_steps(state.optimizer_steps);
  cursor_ = state.cursor;
  best_metric_ = state.best_metric;
  evaluations_without_gain_ = state.evaluations_without_gain;
  result_.best_epoch = state.best_epoch;
  result_.test = state.test;
  confusion_ = state.confusion;
  if (grid_.world().rank() != 0) std::ranges::fill(confusion_, 0);  // one rank's share is all
  restored_losses_ = state.losses;
  restored_counts_ = state.counts;
  restored_counters_ = state.counters;
  return missing;
}

// Room for the losses of this rank's batches of the epoch; those that another run has done are
// there already.
template <class Space>
void TrainerOn<Space>::take_up_losses(const EpochPlan& plan) {
  const auto me = grid_.world().rank();
  Buffer<double> losses(plan.kept_by(me, 0, plan.batches()).size());
  losses_count_ = 0;
  for (std::size_t batch = 0; batch < restored_losses_.size(); ++batch)
    if (plan.rank_of(static_cast<std::int64_t>(batch)) == me)
      losses[losses_count_++] = restored_losses_[batch];
  losses_.resize(losses.size());
  copy_to(space_, losses.data(), std::ssize(losses), losses_.data());
}

}  // namespace espalier
