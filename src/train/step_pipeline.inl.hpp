// What StepPipelineOn does, for every space: instantiated with TrainerOn.
#pragma once

#include <algorithm>
#include <limits>
#include <utility>

#include "espalier/train/step_pipeline.hpp"

namespace espalier {

inline constexpr const char* kFetch = "fetch";

// Of a job's steps, counted from its first; `steps` of an epoch.
inline std::int64_t step_of_job(const Cursor& cursor, std::int64_t steps) {
  return (cursor.epoch - 1) * steps + cursor.step;
}
inline std::int64_t step_of_job(const EpochPlan& plan, std::int64_t step) {
  return step_of_job({static_cast<std::int64_t>(plan.epoch()), step}, plan.steps());
}

template <class Space>
StepSourceOn<Space> steps_of(const TrainingJobOn<Space>& job) {
  const auto& config = job.config;
  return {.grid = job.grid,
          .sampler = job.sampler,
          .input = job.input,
          .examples = job.task.examples(),
          .shape = {.batch_size = config.sampler.batch_size,
                    .batches_per_step = job.batches_per_step,
                    .ranks = job.grid.host().ranks(),
                    .seed = static_cast<std::uint64_t>(config.train.seed),
                    .groups = job.groups,
                    .population = job.population},
          .epochs = config.train.epochs,
          .bulk = job.bulk,
          .prefetched = config.run.overlap ? config.run.prefetch_steps : 0,
          .caches = caches_of(job),
          .ahead = job.ahead};
}

template <class Space>
StepPipelineOn<Space>::Epoch::Epoch(const StepSourceOn<Space>& source, EpochPlan plan_, const Cursor& start,
                                    std::span<const std::size_t> transposed)
    : plan(std::move(plan_)),
      sampler(source.grid.host(), source.sampler, plan, source.bulk, source.ahead,
              plan.step_begin(start.step), transposed) {}

template <class Space>
std::unique_ptr<typename StepPipelineOn<Space>::Epoch> StepPipelineOn<Space>::open(const Cursor& start) {
  const bool other_blocks =
      std::ranges::any_of(hooks_, [](const auto& hook) { return hook->makes_blocks(); });
  auto opened = std::make_unique<Epoch>(source_, take_plan(start.epoch), start,
                                        other_blocks ? std::span<const std::size_t>() : source_.transposed);
  plan_ahead(start.epoch + 1);
  return opened;
}

template <class Space>
EpochPlan StepPipelineOn<Space>::take_plan(std::int64_t epoch) {
  if (planned_.epoch != epoch) return plan_of_epoch(source_, epoch);
  planned_.done.get();
  planned_.epoch = 0;
  return std::move(**planned_.plan);
}

// The host of a GPU has time for it while an epoch computes; at its end the GPU would wait.
template <class Space>
void StepPipelineOn<Space>::plan_ahead(std::int64_t epoch) {
  if (!planner_.has_thread() || epoch > source_.epochs) return;
  const auto plan = std::make_shared<std::optional<EpochPlan>>();
  planned_ = {epoch, plan,
              planner_.add([this, plan, epoch] { plan->emplace(plan_of_epoch(source_, epoch)); })};
}

template <class Space>
void StepPipelineOn<Space>::enter(const Cursor& start) {
  if (next_epoch_) {
    epoch_ = std::move(next_epoch_);
    if (!begins_next_epoch_) next_step_ = 0;
  } else {
    epoch_ = open(start);
    next_step_ = start.step;
  }
  begins_next_epoch_ = false;
  source_.grid.host().traffic().take_over(of_next_epoch_);
  drawn_ = {};
  fetched_ = {};
}

// Does some work of an epoch; of the next one it is booked apart.
template <class Space>
template <class Work>
void StepPipelineOn<Space>::booked_to(const Epoch* epoch, Work work) {
  if (epoch != next_epoch_.get()) return work();
  auto& ledger = source_.grid.host().traffic();
  Traffic until_now;
  until_now.take_over(ledger);
  work();
  of_next_epoch_.take_over(ledger);
  ledger.take_over(until_now);
}

template <class Space>
TrainingStepOn<Space> StepPipelineOn<Space>::next(InputMatrices<Space>& rows, EdgesOn<Space>& edges) {
  progress_.rest();
  if (begun_.empty()) begin_step();
  auto begun = std::move(begun_.front());
  begun_.pop_front();
  TrainingStepOn<Space> step = {begun.step.number, std::move(begun.step.minibatches)};
  {
    const typename StageClock<Space>::Scope waiting(clock_, kFetch);
    source_.input.advance(space_, begun.pending, FetchMove::kRows, kFetch);
    source_.input.finish(space_, begun.pending, step.minibatches, rows, edges, kFetch);
    step.remote_rows = begun.pending.remote_rows().asked;
    step.rows_read = std::exchange(begun.pending.rows_read, {});
    note_arrival(begun.step, begun.pending);
    idle_.push_back(std::move(begun.pending));
  }
  if (begun.step.drawn) drawn_.add(*begun.step.drawn);
  look_ahead();
  progress_.run();
  return step;
}

template <class Space>
void StepPipelineOn<Space>::note_arrival(const Upcoming& step, const PendingInputOn<Space>& pending) {
  const auto rows = pending.remote_rows(), bytes = source_.input.remote_bytes(pending);
  fetched_.rows.add(rows.asked, rows.cached);
  fetched_.bytes.add(bytes.asked, bytes.cached);
  fetched_.of_disk.add(pending.of_disk());
  if (step.drawn)
    fetched_.spared_bytes.reset();
  else if (step.changed && fetched_.spared_bytes)
    *fetched_.spared_bytes += source_.input.remote_bytes(space_, step.sampled) - bytes.asked - bytes.cached;
}

template <class Space>
std::int64_t StepPipelineOn<Space>::bytes_of_hooks() const {
  std::int64_t bytes = 0;
  for (const auto& hook : hooks_) bytes += hook->bytes();
  return bytes;
}

template <class Space>
void StepPipelineOn<Space>::lend_memory_of_disk() {
  most_bytes_of_caches_ = caches_.bytes();
  caches_.release_disk(space_);
}

// Counts go a step before ids, where ids have a step to travel.
template <class Space>
void StepPipelineOn<Space>::look_ahead() {
  const auto k = source_.prefetched, begun = k > 1 ? k + 1 : k;
  while (std::ssize(begun_) < begun && begin_step()) continue;
  const typename StageClock<Space>::Scope time(clock_, kFetch);
  for (std::int64_t ahead = 1; ahead <= std::min(k, std::ssize(begun_)); ++ahead)
    booked_to(begun_[ahead - 1].epoch, [&] {
      source_.input.advance(space_, begun_[ahead - 1].pending,
                            ahead < k || k == 1 ? FetchMove::kRows : FetchMove::kIds, kFetch);
    });
}

// The epoch that has the step to begin; null when there is none.
template <class Space>
typename StepPipelineOn<Space>::Epoch* StepPipelineOn<Space>::epoch_of_next_step() {
  auto* const epoch = begins_next_epoch_ ? next_epoch_.get() : epoch_.get();
  if (next_step_ < epoch->plan.steps()) return epoch;
  const auto next = static_cast<std::int64_t>(epoch_->plan.epoch()) + 1;
  if (begins_next_epoch_ || source_.prefetched == 0 || next > source_.epochs) return nullptr;
  if (!next_epoch_) next_epoch_ = open({next, 0});
  begins_next_epoch_ = true;
  next_step_ = 0;
  return next_epoch_.get();
}

// Who draws the minibatches of a step, if not the sampler.
template <class Space>
StepHookOn<Space>* StepPipelineOn<Space>::drawer_of(std::int64_t step) const {
  for (const auto& hook : hooks_)
    if (const auto first = hook->draws_from(); first && step >= *first) return hook.get();
  return nullptr;
}

// Has the minibatches of the next step and begins to ask for their rows; false when there
// is no step.
template <class Space>
bool StepPipelineOn<Space>::begin_step() {
  auto* const epoch = epoch_of_next_step();
  if (epoch == nullptr) return false;
  const auto& plan = epoch->plan;
  Upcoming step = {.number = step_of_job(plan, next_step_), .plan = &plan, .step = next_step_};
  step.batches = plan.kept_by(source_.grid.host().world().rank(), plan.step_begin(next_step_),
                              plan.step_end(next_step_));
  if (auto* const hook = drawer_of(step.number))
    draw_by(*hook, *epoch, step);
  else
    take_sampled(*epoch, step);
  ++next_step_;
  const typename StageClock<Space>::Scope time(clock_, kFetch);
  if (idle_.empty()) idle_.push_back(caches_.pending());
  auto pending = std::move(idle_.back());
  idle_.pop_back();
  booked_to(epoch, [&] {
    for (const auto& hook : hooks_) hook->begin(space_, step);
    if (!caches_.empty()) caches_.set_memory(space_, source_.caches.memory - bytes_of_hooks());
    source_.input.begin_counts(space_, step.minibatches, pending, kFetch);
    ++fetches_;
  });
  begun_.push_back({epoch, std::move(step), std::move(pending)});
  return true;
}

// The minibatches of a step from the sampler. What follows is sampled meanwhile, unless a hook will
// draw it.
template <class Space>
void StepPipelineOn<Space>::take_sampled(Epoch& epoch, Upcoming& step) {
  const auto begin = epoch.plan.step_begin(step.step), end = epoch.plan.step_end(step.step);
  const typename StageClock<Space>::Scope time(clock_, "sample");
  booked_to(&epoch, [&] {
    epoch.sampler.sample_until(space_, end);
    tell_caches(epoch, step);
  });
  step.minibatches = step.sampled = epoch.sampler.take(begin, end);
  constexpr auto kLast = std::numeric_limits<std::int64_t>::max();
  if (source_.ahead != nullptr && drawer_of(kLast) == nullptr) sample_ahead(epoch);
}

// Caches that choose by what comes hear of the minibatches that were sampled since.
template <class Space>
void StepPipelineOn<Space>::tell_caches(const Epoch& epoch, const Upcoming& next) {
  if (std::exchange(told_epoch_, epoch.plan.epoch()) != epoch.plan.epoch()) told_batches_ = 0;
  const auto sampled = epoch.sampler.sampled();
  if (!caches_.prefetches() || sampled <= told_batches_) return;
  const auto& plan = epoch.plan;
  const auto& waiting = epoch.sampler.waiting();
  std::vector<PrefetchedStepOn<Space>> steps;
  for (auto step = next.step; step < plan.steps() && plan.step_begin(step) < sampled; ++step) {
    if (plan.step_end(step) <= told_batches_) continue;
    auto& coming = steps.emplace_back(PrefetchedStepOn<Space>{fetches_ + step - next.step, {}});
    const auto first = waiting.lower_bound(std::max(told_batches_, plan.step_begin(step))),
               last = waiting.lower_bound(plan.step_end(step));
    for (auto at = first; at != last; ++at) coming.minibatches.push_back(at->second);
  }
  told_batches_ = sampled;
  caches_.prefetch(space_, steps, kPrefetched);
}

template <class Space>
void StepPipelineOn<Space>::draw_by(Hook& hook, Epoch& epoch, Upcoming& step) {
  const typename StageClock<Space>::Scope time(clock_, "sample");
  booked_to(&epoch, [&] {
    hook.draw(space_, source_.sampler, step);
    if (source_.ahead != nullptr) source_.grid.host().traffic().take_over(source_.ahead->world.traffic());
  });
}

// Keeps one window under way on the sampling thread: the next of this epoch, or the first
// of the next.
template <class Space>
void StepPipelineOn<Space>::sample_ahead(Epoch& epoch) {
  if (epoch.sampler.under_way() || (next_epoch_ && &epoch != next_epoch_.get())) return;
  if (!epoch.sampler.all_begun()) return epoch.sampler.begin_window(space_);
  const auto next = static_cast<std::int64_t>(epoch.plan.epoch()) + 1;
  if (next_epoch_ || next > source_.epochs) return;
  next_epoch_ = open({next, 0});
  next_epoch_->sampler.begin_window(space_);
}

template <class Space>
void StepPipelineOn<Space>::progress() {
  const typename StageClock<Space>::Scope time(clock_, kFetch);
  for (auto& begun : begun_) begun.pending.progress();
}

template <class Space>
void StepPipelineOn<Space>::wait_for_sampling() {
  if (source_.ahead == nullptr) return;
  const typename StageClock<Space>::Scope waiting(clock_, "sample");
  source_.ahead->queue.wait();
}

template <class Space>
SampleCounts StepPipelineOn<Space>::counts_of_taken() {
  if (source_.ahead != nullptr) source_.ahead->queue.wait();
  SampleCounts waiting;
  for (const auto& begun : begun_)
    if (begun.epoch == epoch_.get()) waiting.add(space_, begun.step.sampled);
  auto counts = epoch_->sampler.counts_of_taken(space_);
  counts.add(waiting, -1);
  counts.add(drawn_);
  return counts;
}

template <class Space>
SampleCounts StepPipelineOn<Space>::counts_of_epoch() const {
  auto counts = epoch_->sampler.counts();
  counts.add(drawn_);
  return counts;
}

template <class Space>
void StepPipelineOn<Space>::leave() {
  progress_.rest();
  begun_.clear();
  told_epoch_ = 0;
  next_epoch_.reset();
  of_next_epoch_.clear();
  begins_next_epoch_ = false;
}

}  // namespace espalier
