// The hook of a step for history (training_history.hpp): minibatches are pruned, or drawn without
// what history makes needless; the network reads rows that history has; rows of later use are kept.
#pragma once

#include "espalier/history/training_history.hpp"
#include "espalier/train/planned_hooks.hpp"
#include "espalier/train/step_hook.hpp"

namespace espalier {

/// "held" of the group "history": what caches held, by layer and age.
void say_held(std::span<const HeldHistory> held, EpochReport& report);

/// What history spared. Empty without.
std::string history_lines(std::span<const EpochReport> epochs);

/// Rows that it holds, and that steps have written which it does not hold yet
/// (history/history_cache.hpp), as many as training will ever have at once; none where no row can
/// be read.
PlannedHook plan_history(const PlannedTraining& training, double rows_kept_before);

template <class Space>
class HistoryHookOn final : public StepHookOn<Space> {
  using typename StepHookOn<Space>::Pass;
  using typename StepHookOn<Space>::Upcoming;

 public:
  explicit HistoryHookOn(const TrainingJobOn<Space>& job)
      : job_(job), history_(job.grid, job.config, job.batches_per_step) {
    this->counters_ = history_counters();
  }

  bool makes_blocks() const override { return true; }
  std::optional<std::int64_t> draws_from() const override {
    if (history_.draws_needed() && history_.can_hit()) return job_.config.history.start;
    return {};
  }
  void draw(const Space& space, SamplerOn<Space>& sampler, Upcoming& step) override {
    auto& begun = begun_[step.number];
    history_.draw(space, step.number, sampler, *step.plan, step.batches, step.minibatches, begun,
                  kHistoryLabel);
    step.drawn = begun.drawn;
  }
  void begin(const Space& space, Upcoming& step) override {
    if (step.drawn) return;
    auto& begun = begun_[step.number];
    if (history_.waits(step.number)) begun.counts = history_.counts_before_start(step.minibatches);
    if (!history_.works(step.number)) return;
    history_.begin(space, step.number, step.minibatches, begun, kHistoryLabel);
    step.changed = !begun.empty();
  }

  void join(Pass& pass) override {
    const auto& begun = begun_.at(pass.step);
    if (begun.empty()) return;
    const auto& pruned = begun.pruned[pass.place];
    joined_.layers.clear();
    for (std::size_t l = 0; l < pruned.layers.size(); ++l) {
      const auto& layer = pruned.layers[l];
      auto& rows = joined_.layers.emplace_back();
      rows = {layer.place, layer.computed.columns, &begun.cached[pass.place][l]};
      if (l == 0 || begun.recomputed[pass.place].empty()) continue;
      if (const auto& drawn = begun.recomputed[pass.place][l - 1]; !drawn.empty())
        rows.positions = layer.computed.positions, rows.drawn = drawn.data();
    }
    joined_.weight = history_.recomputed_weight();
    pass.joined = &joined_;
  }
  void note(const Space& space, const Pass& pass, Network<float, Space>& network) override {
    auto& begun = begun_.at(pass.step);
    if (begun.empty()) return;
    history_.note(space, pass.step, begun.pruned[pass.place], begun.recomputed[pass.place], network,
                  this->counters_);
  }
  void end(const Space& space, std::int64_t number) override {
    this->counters_.add(begun_.extract(number).mapped().counts);
    if (history_.works(number)) history_.end(space, number, kHistoryLabel);
  }

  void report(const Space& space, std::int64_t next, EpochReport& report) override {
    say_held(history_.held(space, next), report);
  }

  void state(const Space& space, std::int64_t next, bool, std::vector<StateTensor>& to) override {
    std::ranges::move(history_.state(space, next), std::back_inserter(to));
  }
  std::string restore(const Space& space, std::int64_t next, bool, SavedTensors& tensors) override {
    if (history_.restore(space, next, tensors.all()) || next == 0) return {};
    return fmt::format(
        "no history with history.scope = \"{}\" and history.stored = \"{}\": it begins empty, so weights "
        "differ from a run in one piece",
        job_.config.history.scope, job_.config.history.stored);
  }
  std::int64_t bytes() const override { return history_.bytes(); }

 private:
  const TrainingJobOn<Space>& job_;
  TrainingHistoryOn<Space> history_;
  std::map<std::int64_t, PrunedStepOn<Space>> begun_;
  JoinedRows<float, Space> joined_;  // of the minibatch under way
};

template <class Space>
std::unique_ptr<StepHookOn<Space>> make_history(const HooksOfJob<Space>& of) {
  if (of.job.config.history.kind == "none") return nullptr;
  return std::make_unique<HistoryHookOn<Space>>(of.job);
}

}  // namespace espalier
