// The hook of a step that keeps feature rows of other ranks, and of the disk
// (feature/input_caches.hpp), in what the parts before it leave of run.cache_memory; and the one
// that counts which bytes need not be moved.
#pragma once

#include "espalier/feature/fetch_model.hpp"
#include "espalier/feature/input_caches.hpp"
#include "espalier/history/training_history.hpp"
#include "espalier/train/planned_hooks.hpp"
#include "espalier/train/step_hook.hpp"

namespace espalier {

/// The group of what was read from disk.
inline constexpr const char* kDiskGroup = "disk";

/// Collective. Seconds of an epoch's reads, and those that its steps waited for them: the most of a
/// rank.
void say_seconds_of_disk(const Communicator& comm, const DiskCounts& mine, EpochReport& report);

/// What was read from disk, and how long that took; empty where nothing is there.
std::string disk_line(std::span<const EpochReport> epochs);

/// What history and cached rows saved between ranks; empty where nothing was.
std::string saved_line(std::span<const EpochReport> epochs);

/// Copies of rows that other ranks own (feature/row_cache.hpp), the most that there are and that
/// the parts before leave of run.cache_memory.
PlannedHook plan_feature_cache(const PlannedTraining& training, double rows_kept_before);

/// Counts, of the input rows that other ranks own: those that minibatches needed, those of them
/// that were kept here, and at the end of an epoch the bytes of both, the most of a rank; of rows
/// that were wanted of disks, by others, too: all, those that were kept, the bytes that were read
/// for the rest, and the seconds of that, as those of stages, of this run.
template <class Space>
class FeatureCacheHookOn final : public StepHookOn<Space> {
  using typename StepHookOn<Space>::Upcoming;
  static constexpr const char *kGroup = "feature_cache", *kDisk = kDiskGroup;

 public:
  FeatureCacheHookOn(const TrainingJobOn<Space>& job, const StepHooksOn<Space>& before)
      : memory_(cache_memory(job.config.run)),
        world_(job.grid.host().world()),
        before_(before),
        place_(before.size()),
        on_disk_(job.config.graph.features_on_disk()) {
    if (memory_ > 0) {
      caches_ = {job.input, cache_rule_of(job.config.run.cache_policy), job.by_degree};
      this->counters_ = {{{kGroup, "needed"},
                          {kGroup, "served"},
                          {kGroup, "bytes", OverRanks::kMost},
                          {kGroup, "history_bytes", OverRanks::kMost}}};
    }
    if (on_disk_)
      for (const char* name : {"rows", "kept", "bytes"}) this->counters_.declare({kDisk, name});
  }

  void prefetch(const Space& space, const Upcoming& next,
                const std::map<std::int64_t, MinibatchOn<Space>>& waiting, std::int64_t sampled) override {
    const auto& plan = *next.plan;
    if (std::exchange(epoch_, plan.epoch()) != plan.epoch()) prefetched_ = 0;
    if (!caches_.prefetches() || sampled <= prefetched_) return;
    std::vector<PrefetchedStepOn<Space>> steps;
    for (auto step = next.step; step < plan.steps() && plan.step_begin(step) < sampled; ++step) {
      if (plan.step_end(step) <= prefetched_) continue;
      auto& coming = steps.emplace_back(PrefetchedStepOn<Space>{fetches_ + step - next.step, {}});
      const auto first = waiting.lower_bound(std::max(prefetched_, plan.step_begin(step))),
                 last = waiting.lower_bound(plan.step_end(step));
      for (auto at = first; at != last; ++at) coming.minibatches.push_back(at->second);
    }
    prefetched_ = sampled;
    caches_.prefetch(space, steps, kPrefetched);
  }
  void begin(const Space& space, Upcoming& step) override {
    ++fetches_;
    if (caches_.empty()) return;
    caches_.set_memory(space, memory_ - bytes_before());
    step.copies = caches_.of_tables();
  }
  // An evaluation keeps rows of its own in as much.
  void before_evaluation(const Space& space, Network<float, Space>&) override {
    most_bytes_ = caches_.bytes();
    caches_.release_disk(space);
  }
  void arrived(const Space&, const Upcoming&, PendingInputOn<Space>& pending) override {
    if (memory_ > 0) {
      const auto [remote, kept] = pending.remote_rows();
      this->counters_.add(kGroup, "needed", remote + kept);
      this->counters_.add(kGroup, "served", kept);
    }
    if (!on_disk_) return;
    const auto read = pending.of_disk();
    this->counters_.add(kDisk, "rows", read.rows);
    this->counters_.add(kDisk, "kept", read.rows - read.missed);
    this->counters_.add(kDisk, "bytes", read.bytes);
    read_.add(read);
  }

  Counters counters() const override {
    auto counters = this->counters_;
    if (memory_ == 0) return counters;
    counters.set(kGroup, "bytes", std::max(most_bytes_, caches_.bytes()));
    counters.set(kGroup, "history_bytes", bytes_before());
    return counters;
  }
  void clear_counters() override {
    this->counters_.clear();
    read_ = {};
  }
  void report(const Space&, std::int64_t, EpochReport& report) override {
    if (on_disk_) say_seconds_of_disk(world_, read_, report);
  }
  std::int64_t bytes() const override { return caches_.bytes(); }

 private:
  std::int64_t bytes_before() const {
    std::int64_t bytes = 0;
    for (std::size_t k = 0; k < place_; ++k) bytes += before_[k]->bytes();
    return bytes;
  }

  std::int64_t memory_;
  const Communicator& world_;
  const StepHooksOn<Space>& before_;
  std::size_t place_;  // of this part
  bool on_disk_;
  InputCachesOn<Space> caches_;
  DiskCounts read_;              // in the epoch, by this run
  std::int64_t most_bytes_ = 0;  // that they had when an evaluation began
  std::uint64_t epoch_ = 0;      // that the caches were told of last
  std::int64_t prefetched_ = 0;  // batches below were told to the caches
  std::int64_t fetches_ = 0;     // that have begun
};

template <class Space>
std::unique_ptr<StepHookOn<Space>> make_feature_cache(const HooksOfJob<Space>& of) {
  const auto& config = of.job.config;
  if (cache_memory(config.run) == 0 && !config.graph.features_on_disk()) return nullptr;
  return std::make_unique<FeatureCacheHookOn<Space>>(of.job, of.before);
}

/// Counts bytes of input rows that other ranks own, and of the ids that they are asked for by, that
/// were not moved: those of the stage `fetch` are fewer by the sum of the three than without
/// history and run.cache_memory (but for corrections and gradients of trainable embeddings).
///
///     pruned    of the sample, and not of what is left of it
///     kept      of what is left, those of which a copy was here
///     history   at most 0: what history moved for that
template <class Space>
class SavedBytesOn final : public StepHookOn<Space> {
  using typename StepHookOn<Space>::Upcoming;
  static constexpr const char* kGroup = "saved";

 public:
  explicit SavedBytesOn(const TrainingJobOn<Space>& job) : grid_(job.grid.host()), input_(job.input) {
    this->counters_ = {{{kGroup, "pruned"}, {kGroup, "kept"}, {kGroup, "history"}}};
  }

  void arrived(const Space& space, const Upcoming& step, PendingInputOn<Space>& pending) override {
    const auto remote = input_.remote_bytes(pending);
    this->counters_.add(kGroup, "kept", remote.cached);
    if (step.drawn)
      this->counters_.give_up(kGroup, "pruned");
    else if (step.changed)
      this->counters_.add(kGroup, "pruned",
                          input_.remote_bytes(space, step.sampled) - remote.asked - remote.cached);
  }
  // What history moved is all that the epoch has booked, of steps begun ahead, too.
  Counters counters() const override {
    auto counters = this->counters_;
    counters.set(kGroup, "history", -grid_.traffic().of_stage(kHistoryLabel).bytes_received);
    return counters;
  }

 private:
  const Grid& grid_;
  const InputStoresOn<Space>& input_;
};

template <class Space>
std::unique_ptr<StepHookOn<Space>> make_saved_bytes(const HooksOfJob<Space>& of) {
  const auto& config = of.job.config;
  if (config.history.kind == "none" && cache_memory(config.run) == 0) return nullptr;
  return std::make_unique<SavedBytesOn<Space>>(of.job);
}

}  // namespace espalier
