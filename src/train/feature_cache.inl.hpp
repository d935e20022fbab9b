// Two hooks of a step that only count and report: of copies of feature rows of other ranks and of
// the disk (feature/input_caches.hpp), which the pipeline of steps keeps in what hooks leave of
// run.cache_memory; and of bytes that were not moved. And what `plan` says of the former.
#pragma once

#include "espalier/feature/fetch_model.hpp"
#include "espalier/history/training_history.hpp"
#include "espalier/train/planned_hooks.hpp"
#include "espalier/train/step_hook.hpp"
#include "espalier/train/step_pipeline.hpp"

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

/// Says, of the input rows that other ranks own: those that minibatches needed, those of them that
/// were kept here, and at the end of an epoch the bytes of both, the most of a rank; of rows that
/// were wanted of disks, by others, too: all, those that were kept, the bytes that were read for
/// the rest, and the seconds of that, as those of stages, of this run.
template <class Space>
class FeatureCacheHookOn final : public StepHookOn<Space> {
  static constexpr const char *kGroup = "feature_cache", *kDisk = kDiskGroup;

 public:
  FeatureCacheHookOn(const TrainingJobOn<Space>& job, const StepPipelineOn<Space>& pipeline)
      : caches_(cache_memory(job.config.run) > 0),
        on_disk_(job.config.graph.features_on_disk()),
        world_(job.grid.host().world()),
        pipeline_(pipeline) {}

  Counters counters() const override {
    std::vector<Counter> said;
    const auto& [rows, bytes, of_disk, pruned] = pipeline_.fetched();
    if (caches_)
      said = {{kGroup, "needed", OverRanks::kSum, rows.asked + rows.cached},
              {kGroup, "served", OverRanks::kSum, rows.cached},
              {kGroup, "bytes", OverRanks::kMost, pipeline_.bytes_of_caches()},
              {kGroup, "history_bytes", OverRanks::kMost, pipeline_.bytes_of_hooks()}};
    if (on_disk_) {
      said.push_back({kDisk, "rows", OverRanks::kSum, of_disk.rows});
      said.push_back({kDisk, "kept", OverRanks::kSum, of_disk.rows - of_disk.missed});
      said.push_back({kDisk, "bytes", OverRanks::kSum, of_disk.bytes});
    }
    return said;
  }
  void report(const Space&, std::int64_t, EpochReport& report) override {
    if (on_disk_) say_seconds_of_disk(world_, pipeline_.fetched().of_disk, report);
  }

 private:
  bool caches_, on_disk_;
  const Communicator& world_;
  const StepPipelineOn<Space>& pipeline_;
};

template <class Space>
std::unique_ptr<StepHookOn<Space>> make_feature_cache(const HooksOfJob<Space>& of) {
  const auto& config = of.job.config;
  if (cache_memory(config.run) == 0 && !config.graph.features_on_disk()) return nullptr;
  return std::make_unique<FeatureCacheHookOn<Space>>(of.job, of.pipeline);
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
  static constexpr const char* kGroup = "saved";

 public:
  SavedBytesOn(const TrainingJobOn<Space>& job, const StepPipelineOn<Space>& pipeline)
      : grid_(job.grid.host()), pipeline_(pipeline) {}

  // What history moved is all that the epoch has booked, of steps begun ahead, too.
  Counters counters() const override {
    const auto& fetched = pipeline_.fetched();
    const auto history = grid_.traffic().of_stage(kHistoryLabel).bytes_received;
    Counters counters({{kGroup, "pruned", OverRanks::kSum, fetched.spared_bytes.value_or(0)},
                       {kGroup, "kept", OverRanks::kSum, fetched.bytes.cached},
                       {kGroup, "history", OverRanks::kSum, -history}});
    if (!fetched.spared_bytes) counters.give_up(kGroup, "pruned");
    return counters;
  }

 private:
  const Grid& grid_;
  const StepPipelineOn<Space>& pipeline_;
};

template <class Space>
std::unique_ptr<StepHookOn<Space>> make_saved_bytes(const HooksOfJob<Space>& of) {
  const auto& config = of.job.config;
  if (config.history.kind == "none" && cache_memory(config.run) == 0) return nullptr;
  return std::make_unique<SavedBytesOn<Space>>(of.job, of.pipeline);
}

}  // namespace espalier
