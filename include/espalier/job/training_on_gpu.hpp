// What a job trains with, as an object: read, set up where the job computes, and lent to a trainer.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "espalier/base/buffer.hpp"
#include "espalier/feature/cache_policy.hpp"
#include "espalier/feature/row_cache.hpp"
#include "espalier/job/job.hpp"
#include "espalier/job/job_on_gpu.hpp"
#include "espalier/plan/job_shapes.hpp"
#include "espalier/train/step_hook.hpp"

namespace espalier {

/// How many rows of features run.cache_memory is enough for; 0 where none is of another rank, or on
/// disk.
inline std::int64_t most_cached_rows(const Config& config, const std::vector<RowStore>& features) {
  std::int64_t most = 0;
  for (const auto& store : features)
    if (const auto& rows = store.storage(); !rows.has_all() || rows.on_disk())
      most = std::max(most, cache_memory(config.run) / (rows.row_bytes() + RowCache::kFoundBy));
  return most;
}

/// What a job trains with on a space. It lends all of it, and stays where it is; so must the job.
template <class Space>
class TrainingSetOn {
 public:
  virtual ~TrainingSetOn() = default;
  const Space& space() const { return space_; }
  virtual TrainingJobOn<Space> lent() const = 0;
  virtual const Targets& targets() const = 0;
  /// Collective. Another sampler over the same matrix.
  virtual std::unique_ptr<SamplerOn<Space>> make_sampler(const std::string& kind,
                                                         const SamplerShape& shape) const = 0;

 protected:
  explicit TrainingSetOn(const Space& space) : space_(space) {}

 private:
  const Space& space_;
};

/// The same for a width of indices: made in the order of its members.
template <class Index, class Space>
class TrainingSetOver final : public TrainingSetOn<Space> {
 public:
  /// Collective.
  TrainingSetOver(const Job& job, const Space& space, DistCsr<Index> a, InputFeatures features,
                  std::shared_ptr<const EdgeStore> edges, std::unique_ptr<const Targets> targets)
      : TrainingSetOn<Space>(space),
        job_(job),
        placed_(job, std::move(a)),
        ahead_(job.sampling_grid ? std::make_unique<SampleAhead>(job.sampling_grid->world()) : nullptr),
        input_(place_input(job, placed_.grid, std::move(features), std::move(edges),
                           make_embeddings(job, space, placed_.grid))),
        targets_(std::move(targets)),
        shape_(sampler_shape(job.config, job.graph, job.grid->ranks())),
        sampler_(make_sampler(job.config.sampler.kind, shape_)),
        whole_rows_(make_sampler("graphsage", whole_rows_shape(shape_, "evaluate"))),
        task_(make_task(space, *job.grid, *targets_, job.config.train)),
        evaluator_(placed_.grid, *whole_rows_, input_, job.owners.blocks, *task_,
                   EntriesOfRows(placed_.matrix), pass_memory(job)) {
    placed_.say_transport();
  }

  TrainingJobOn<Space> lent() const override {
    return {placed_.grid,
            job_.config,
            *sampler_,
            input_,
            *task_,
            evaluator_,
            job_.bulk(),
            job_.batches_per_step(),
            ahead_.get(),
            input_of(job_),
            job_.owners.groups.get(),
            population_of(sampler_kind_of(job_.config.sampler.kind), job_.graph.nodes),
            job_.by_degree};
  }

  const Targets& targets() const override { return *targets_; }
  std::unique_ptr<SamplerOn<Space>> make_sampler(const std::string& kind,
                                                 const SamplerShape& shape) const override {
    note_activity("setting up the samplers");
    return espalier::make_sampler(this->space(), kind, placed_.matrix, shape);
  }

 private:
  const Job& job_;
  PlacedMatrix<Index, Space> placed_;
  std::unique_ptr<SampleAhead> ahead_;
  InputStoresOn<Space> input_;
  std::unique_ptr<const Targets> targets_;
  SamplerShape shape_;
  std::unique_ptr<SamplerOn<Space>> sampler_, whole_rows_;
  std::unique_ptr<TaskOn<Space>> task_;
  EvaluatorOn<Space> evaluator_;
};

/// Collective. Does no edge lead to any of the vertices that are trained on from another vertex; of
/// links, to any vertex?
template <class Index>
bool sees_no_neighbours(const Job& job, const DistCsr<Index>& a, const Targets& targets) {
  if (job.config.model.layers == 0) return false;
  const auto columns = a.columns.view();
  const bool of_labels = task_kind_of(job.config.train.task).of_labels;
  std::int64_t reached = 0;
  a.for_each_row([&](std::int64_t row, std::int64_t v) {
    if (reached != 0 || (of_labels && !std::ranges::binary_search(targets.train, v))) return;
    for (const auto column : a.local.row_indices(row)) reached |= columns.vertex(column) != v;
  });
  return job.grid->world().all_reduce(reached, Reduction::kMax, "setup") == 0;
}

#ifdef ESPALIER_WITH_CUDA
using TrainingSet = std::variant<std::unique_ptr<TrainingSetOn<Cpu>>, std::unique_ptr<TrainingSetOn<Cuda>>>;
#else
using TrainingSet = std::variant<std::unique_ptr<TrainingSetOn<Cpu>>>;
#endif

/// Collective. Reads what a job trains with, which must outlive it; when all was read, check() may
/// refuse. What is found out on the way stands in the job: by_degree, standardization,
/// sees_no_neighbours.
template <class Check>
TrainingSet open_training(Job& job, Check check) {
  return with_index_type(job.graph.columns, [&](auto index) -> TrainingSet {
    using Index = decltype(index);
    // 1. The matrix on the grid, and what is learnt from it.
    auto a = read_model_matrix<Index>(job);
    note_activity("reading what is learnt");
    std::unique_ptr<const Targets> targets =
        read_targets(*job.grid, *job.file, job.owners.blocks, job.config, job.owners.groups.get());
    auto features = read_job_features(job);
    auto edges = read_job_edges(job);
    if (const auto rows = most_cached_rows(job.config, features.stores); rows > 0)
      job.by_degree = rows_by_degree(a, rows);
    job.standardization = features.standard;
    check();
    job.sees_no_neighbours = sees_no_neighbours(job, a, *targets);

    // 2. Where the job computes.
    return where_it_computes(job, [&]<class Space>(const Space& space) -> TrainingSet {
      auto set = std::make_unique<TrainingSetOver<Index, Space>>(
          job, space, std::move(a), std::move(features), std::move(edges), std::move(targets));
      give_back_freed_memory();
      return set;
    });
  });
}

}  // namespace espalier
