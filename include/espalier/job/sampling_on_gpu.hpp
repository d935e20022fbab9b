// Sampling without a network: the matrix where the job computes, the sampler over it, its epochs.
#pragma once

#include <functional>
#include <memory>

#include "espalier/base/watchdog.hpp"
#include "espalier/job/job.hpp"
#include "espalier/job/job_on_gpu.hpp"
#include "espalier/plan/job_shapes.hpp"
#include "espalier/sample/epoch_sampler.hpp"
#include "espalier/train/task.hpp"

namespace espalier {

/// Collective. Reads the matrix of the job and calls use(space, matrix), a generic function, where
/// the job computes.
template <class Use>
void with_matrix(const Job& job, Use use) {
  with_index_type(job.graph.columns, [&](auto index) {
    auto a = read_model_matrix<decltype(index)>(job);
    where_it_computes(job, [&](const auto& space) {
      using Space = std::remove_cvref_t<decltype(space)>;
      use(space, PlacedMatrix<decltype(index), Space>(job, std::move(a)).matrix);
    });
  });
}

/// Collective. The sampler of the job over its matrix.
template <class Index, class Space>
std::unique_ptr<SamplerOn<Space>> make_job_sampler(const Job& job, const Space& space,
                                                   const DistCsr<Index, Space>& matrix) {
  note_activity("setting up the sampler");
  return make_sampler(space, job.config.sampler.kind, matrix,
                      sampler_shape(job.config, job.graph, job.grid->ranks()));
}

/// Who wants the minibatches of an epoch.
template <class Space>
struct MinibatchesWanted {
  /// Local: one that this rank keeps, with the batch that it was drawn for.
  std::function<void(const SeedBatch& batch, const MinibatchOn<Space>& minibatch)> take = {};
  /// Collective, whenever the steps of another window or more are done, and at the end.
  std::function<void()> after_window = {};
};

/// Collective. Draws the minibatches of an epoch. The seconds of `wanted` are none of the sampling.
template <class Space>
EpochReport sample_epoch(const Job& job, const Space& space, SamplerOn<Space>& sampler,
                         const ExampleSource& examples, std::int64_t epoch,
                         const MinibatchesWanted<Space>& wanted = {}) {
  StageTimers timers;
  job.grid->traffic().clear();
  EpochReport report;
  report.epoch = epoch;
  {
    const StageTimers::Scope whole(timers, "total");
    const EpochPlan plan(
        examples, {.batch_size = job.config.sampler.batch_size,
                   .batches_per_step = job.batches_per_step(),
                   .ranks = job.grid->ranks(),
                   .seed = static_cast<std::uint64_t>(job.config.train.seed),
                   .epoch = static_cast<std::uint64_t>(epoch),
                   .groups = job.owners.groups.get(),
                   .population = population_of(sampler_kind_of(job.config.sampler.kind), job.graph.nodes)});
    EpochSamplerOn<Space> epoch_sampler(*job.grid, sampler, plan, job.bulk());
    for (std::int64_t step = 0; step < plan.steps(); ++step) {
      const auto begin = plan.step_begin(step), end = plan.step_end(step);
      note_step(epoch, step + 1, plan.steps());
      {
        const StageTimers::Scope time(timers, "sample");
        epoch_sampler.sample_until(space, end);
      }
      for (const auto& minibatch : epoch_sampler.take(begin, end)) {
        if (wanted.take) wanted.take(plan.batch(minibatch.number), minibatch);
        plan.examples().release(minibatch.number);
      }
      const bool window_done = end == plan.batches() || end / job.bulk() > begin / job.bulk();
      if (wanted.after_window && window_done) wanted.after_window();
      note_progress();
    }
    report.counts = sum_over_ranks(epoch_sampler.counts(), job.grid->world());
  }
  finish_epoch_report(*job.grid, timers, kSampleStages, report);
  return report;
}

/// Collective. The same of a job that draws one epoch, and needs no sampler of its own.
inline EpochReport sample_epoch(const Job& job, std::int64_t epoch) {
  const auto examples = task_kind_of(job.config.train.task)
                            .read_examples(job.grid->world(), *job.file, job.config, job.owners.groups.get());
  EpochReport report;
  with_matrix(job, [&](const auto& space, const auto& matrix) {
    report = sample_epoch(job, space, *make_job_sampler(job, space, matrix), *examples, epoch);
  });
  return report;
}

}  // namespace espalier
