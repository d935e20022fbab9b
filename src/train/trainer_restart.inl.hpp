// How TrainerOn gives its state away between two steps and goes on from one: training_state.hpp
// says what belongs to it.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "espalier/comm/agree.hpp"
#include "trainer.inl.hpp"

namespace espalier {

template <class Space>
std::vector<typename TrainerOn<Space>::TensorPlace> TrainerOn<Space>::weights_and_statistics() {
  std::vector<TensorPlace> all;
  for (auto& parameter : network_.parameters())
    all.push_back({"weights/" + parameter.name, &parameter.value});
  auto& statistics = network_.running_statistics();
  for (std::size_t k = 0; k < statistics.size(); ++k)
    all.push_back(
        {"statistics/" + network_.statistic_names()[k], &statistics[k], "statistics/" + std::to_string(k)});
  return all;
}

template <class Space>
std::vector<typename TrainerOn<Space>::TensorPlace> TrainerOn<Space>::optimizer_state() {
  std::vector<TensorPlace> all;
  for (auto& state : optimizer_.state()) all.push_back({"optimizer/" + state.name, &state.value});
  return all;
}

// All ranks have the same tensors, and each saves some rows of them.
template <class Space>
RowRange TrainerOn<Space>::rows_to_save(std::int64_t rows) const {
  return even_range(rows, grid_.world().size(), grid_.world().rank());
}

template <class Space>
StateTensor TrainerOn<Space>::state_of(const TensorPlace& place) const {
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
StateTensor TrainerOn<Space>::state_of_best(const TensorPlace& place, std::size_t k) const {
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
  if (to_host(space_, diverged_)[0] != 0)
    refuse_divergence(static_cast<std::uint64_t>(cursor_.epoch), job_.config);
  TrainingState state;
  state.cursor = cursor_;
  const auto places = weights_and_statistics();
  for (const auto& place : places) state.tensors.push_back(state_of(place));
  for (std::size_t k = 0; k < best_.size(); ++k) state.tensors.push_back(state_of_best(places[k], k));
  for (const auto& place : optimizer_state()) state.tensors.push_back(state_of(place));
  if (const auto* const embeddings = job_.input.embeddings()) {
    std::ranges::move(embeddings->state(space_), std::back_inserter(state.tensors));
    if (!best_.empty())
      std::ranges::move(embeddings->state_of_kept(best_embeddings_), std::back_inserter(state.tensors));
  }
  if (history_ && job_.config.history.saved) {
    const auto steps = plan_of_epoch(job_, cursor_.epoch).steps();
    std::ranges::move(history_->state(space_, step_of_job(cursor_, steps)),
                      std::back_inserter(state.tensors));
  }
  state.optimizer_steps = optimizer_.steps();
  state.best_metric = best_metric_;
  state.best_epoch = result_.best_epoch;
  state.evaluations_without_gain = evaluations_without_gain_;
  state.test = result_.test;
  state.confusion = whole_confusion("checkpoint");
  if (!within_epoch) return state;
  state.losses = losses_of_done(pipeline_.plan());
  state.counts = counts_of_done();
  state.history = history_of_done();
  state.saved = saved_of_done();
  return state;
}

// Collective. What was sampled for the steps done: all that was sampled but for what waits.
template <class Space>
SampleCounts TrainerOn<Space>::counts_of_done() {
  auto counts = sum_over_ranks(pipeline_.counts_of_taken(), grid_.world());
  counts.add(restored_counts_);
  return counts;
}

// Collective.
template <class Space>
HistoryCounts TrainerOn<Space>::history_of_done() {
  auto counts = sum_over_ranks(history_counts_, grid_.world());
  counts.add(restored_history_);
  return counts;
}

// Collective. What history moved is all that the epoch has booked, of steps begun ahead, too.
template <class Space>
SavedBytes TrainerOn<Space>::saved_of_done() {
  auto mine = saved_;
  mine.history = -grid_.traffic().of_stage(kHistory).bytes_received;
  auto saved = sum_over_ranks(mine, grid_.world());
  saved.add(restored_saved_);
  return saved;
}

// Collective.
template <class Space>
std::vector<double> TrainerOn<Space>::losses_of_done(const EpochPlan& plan) {
  const auto mine = to_host(space_, losses_);
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
  if (report.history) unevaluated.history = *report.history;
  if (report.saved) unevaluated.saved = *report.saved;
  if (progress.save) progress.save(unevaluated);
  pipeline_.leave();
  result_.interrupted = cursor_;
}

// Not collective.
template <class Space>
void TrainerOn<Space>::restore_tensors(const TrainingState& state) {
  std::map<std::string_view, const StateTensor*> tensors;
  for (const auto& tensor : state.tensors) tensors.emplace(tensor.name, &tensor);
  std::set<std::string, std::less<>> taken;
  const auto find_tensor = [&](const std::string& name, std::int64_t rows, std::int64_t columns,
                               const std::string& former_name = {}) -> const StateTensor& {
    auto found = tensors.find(name);
    if (found == tensors.end() && !former_name.empty()) found = tensors.find(former_name);
    if (found == tensors.end())
      input_error("the checkpoint has no {}; it is of another kind of network", name);
    taken.emplace(found->first);
    const auto& tensor = *found->second;
    if (tensor.rows != rows || tensor.columns != columns)
      input_error("{} is {} x {} in the checkpoint and {} x {} in this network", name, tensor.rows,
                  tensor.columns, rows, columns);
    return tensor;
  };
  const auto find = [&](const std::string& prefix, const TensorPlace& place) -> const StateTensor& {
    return find_tensor(prefix + place.name, place.tensor->rows, place.tensor->columns,
                       place.former_name.empty() ? std::string() : prefix + place.former_name);
  };
  auto places = weights_and_statistics();
  best_.clear();
  if (state.best_epoch > 0)
    for (const auto& place : places) {
      const auto& tensor = find("best/", place);
      const auto rows = rows_to_save(tensor.rows);
      auto& kept = best_.emplace_back(static_cast<std::size_t>(rows.size() * tensor.columns));
      if (!kept.empty()) tensor.read(rows, kept.data());
    }
  for (auto& place : optimizer_state()) places.push_back(place);
  for (const auto& place : places) to_space<float>(space_, find("", place).all(), place.tensor->data);
  if (auto* const embeddings = job_.input.embeddings()) {
    const auto find_rows = [&](const std::string& name, std::int64_t rows,
                               std::int64_t columns) -> const StateTensor& {
      return find_tensor(name, rows, columns);
    };
    embeddings->restore(space_, find_rows);
    if (state.best_epoch > 0) best_embeddings_ = embeddings->restore_kept(find_rows);
    // All of them, as rows of a type may lie on other ranks alone.
    for (const auto& tensor : embeddings->state(space_)) taken.insert(tensor.name);
    for (const auto& tensor : embeddings->state_of_kept(best_embeddings_)) taken.insert(tensor.name);
  }
  for (const auto& [name, tensor] : tensors)
    if (!taken.contains(name) && !name.starts_with(kHistoryTensors))
      input_error("the checkpoint has {}, which no part of this training takes; it is of another kind of job",
                  name);
}

template <class Space>
bool TrainerOn<Space>::restore(const TrainingState& state) {
  agree(grid_.world(), [&] { restore_tensors(state); });
  const bool has_history = restore_history(state);
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
  restored_history_ = state.history;
  restored_saved_ = state.saved;
  return has_history;
}

// Collective.
template <class Space>
bool TrainerOn<Space>::restore_history(const TrainingState& state) {
  if (!history_) return true;
  bool found = false;
  const auto steps = plan_of_epoch(job_, state.cursor.epoch).steps();
  agree(grid_.world(),
        [&] { found = history_->restore(space_, step_of_job(state.cursor, steps), state.tensors); });
  return found;
}

// Room for the losses of this rank's batches of the epoch; those that another run has done are
// there already.
template <class Space>
void TrainerOn<Space>::take_up_losses(const EpochPlan& plan) {
  const auto me = grid_.world().rank();
  Buffer<double> losses(batches_of(plan, me));
  losses_count_ = 0;
  for (std::size_t batch = 0; batch < restored_losses_.size(); ++batch)
    if (plan.rank_of(static_cast<std::int64_t>(batch)) == me)
      losses[losses_count_++] = restored_losses_[batch];
  to_space<double>(space_, losses, losses_);
}

}  // namespace espalier
