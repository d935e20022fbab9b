// What a training works with, from an open job to what its trainer is given: read, set up where the
// job computes, and lent to what trains.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "espalier/feature/row_cache.hpp"
#include "espalier/feature/rows_by_degree.hpp"
#include "espalier/train/training_job.hpp"
#include "job.hpp"
#include "job_on_gpu.hpp"

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

/// Collective. Makes the samplers over the matrix, minibatches for training and whole rows for
/// evaluation, and calls train(space, what a trainer is given).
template <class Index, class Space, class Train>
void train_over(const Job& job, const Space& space, const GridOn<Space>& grid,
                const DistCsr<Index, Space>& matrix, const InputStoresOn<Space>& input,
                const Targets& targets, Train train) {
  note_activity("setting up the samplers");
  const auto shape = sampler_shape(job.config, job.graph, job.grid->ranks());
  const auto sampler = make_sampler(space, job.config.sampler.kind, matrix, shape);
  const auto whole_rows = make_sampler(space, "graphsage", matrix, whole_rows_shape(shape, "evaluate"));
  note_activity("setting up the training");
  const auto task = make_task(space, *job.grid, targets, job.config.train);
  const EvaluatorOn<Space> evaluator(grid, *whole_rows, input, job.owners.blocks, *task,
                                     EntriesOfRows(matrix), pass_memory(job));
  train(space, TrainingJobOn<Space>{
                   grid, job.config, *sampler, input, *task, evaluator, job.bulk(), job.batches_per_step(),
                   job.sampling_grid.get(), input_of(job), job.owners.groups.get(),
                   population_of(sampler_kind_of(job.config.sampler.kind), job.graph.nodes), job.by_degree});
}

#ifdef ESPALIER_WITH_CUDA
/// The same on GPUs: matrix and features move to where kernels read them.
template <class Index, class Train>
void train_on_gpu(const Job& job, const DistCsr<Index>& a, std::vector<RowStore> host_features,
                  std::shared_ptr<const EdgeStore> host_edges, const Targets& targets, Train train) {
  const Cuda& gpu = *job.device.gpu;
  const DeviceGrid grid(gpu, *job.grid);
  std::optional<DeviceGrid> beside;
  if (job.sampling_grid) beside.emplace(gpu, *job.sampling_grid, Transport::kHost);
  const auto matrix = place_matrix(job, beside ? *beside : grid, a);
  const InputStoresOn<Cuda> input(place_features(job, grid, std::move(host_features)),
                                  make_embeddings(job, gpu, grid), place_edges(job, grid, host_edges));
  host_edges.reset();
  if (job.grid->ranks() > 1)
    log::info("GPUs exchange by {}{}", grid.transport_in_words(),
              beside && matrix.parts() > 1 ? fmt::format(", samples by {}", beside->transport()) : "");
  train_over(job, gpu, grid, matrix, input, targets, train);
}
#endif

/// Collective. One line where no edge leads to any of the vertices that are trained on from another
/// vertex; of links, to any vertex.
template <class Index>
void warn_of_silence(const Job& job, const DistCsr<Index>& a, const Targets& targets) {
  if (job.config.model.layers == 0) return;
  const auto columns = a.columns.view();
  const bool of_labels = task_kind_of(job.config.train.task).of_labels;
  std::int64_t reached = 0;
  a.for_each_row([&](std::int64_t row, std::int64_t v) {
    if (reached != 0 || (of_labels && !std::ranges::binary_search(targets.train, v))) return;
    for (const auto column : a.local.row_indices(row)) reached |= columns.vertex(column) != v;
  });
  if (job.grid->world().all_reduce(reached, Reduction::kMax, "setup") == 0 && job.grid->world().rank() == 0)
    log::warning("{}", no_message_in_words(job));
}

/// Collective. Reads what the job needs of its graph and calls train(space, TrainingJobOn<Space>),
/// a generic function, with what was made of it; all of it lives as long as that call. When all was
/// read, check() may refuse.
template <class Check, class Train>
void with_training(Job& job, Check check, Train train) {
  with_index_type(job.graph.columns, [&](auto index) {
    // 1. The matrix on the grid, and what is learnt from it.
    const auto a = read_model_matrix<decltype(index)>(job);
    note_activity("reading what is learnt");
    const auto targets =
        read_targets(*job.grid, *job.file, job.owners.blocks, job.config, job.owners.groups.get());
    auto features = read_job_features(job);
    auto edges = read_job_edges(job);
    if (const auto rows = most_cached_rows(job.config, features.stores); rows > 0)
      job.by_degree = rows_by_degree(a, rows);
    job.standardization = std::move(features.standard);
    check();
    warn_of_silence(job, a, *targets);

    // 2. Where the job computes.
#ifdef ESPALIER_WITH_CUDA
    if (job.device.gpu)
      return train_on_gpu(job, a, std::move(features.stores), std::move(edges), *targets, train);
#endif
    const InputStores input(std::move(features.stores), make_embeddings(job, job.cpu, *job.grid),
                            std::move(edges));
    train_over(job, job.cpu, *job.grid, a, input, *targets, train);
  });
}

}  // namespace espalier
