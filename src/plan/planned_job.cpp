#include "espalier/plan/planned_job.hpp"

#include <algorithm>

#include "espalier/feature/edge_store.hpp"
#include "espalier/feature/input_tables.hpp"
#include "espalier/plan/job_shapes.hpp"
#include "espalier/sample/epoch_plan.hpp"
#include "espalier/train/task.hpp"

namespace espalier {

PlannedEpoch planned_epoch(const JobSize& job) {
  const auto& config = job.config;
  const auto tables = input_tables(job.graph, config);
  const auto batches = batches_of_epoch(job.graph, config);
  PlannedEpoch epoch = {.ranks = static_cast<int>(job.ranks),
                        .replication = static_cast<int>(*config.grid.replication.value),
                        .topology = config.grid.replicates() ? Topology::kReplicated
                                    : config.grid.cuts()     ? Topology::kCut
                                                             : Topology::kPartitioned,
                        .on_gpu = job.gpu,
                        .sampler = config.sampler.kind,
                        .shape = sampler_shape(config, job.graph, job.ranks),
                        .batch_size = config.sampler.batch_size,
                        .batches_per_step = std::min(*config.train.batches_per_step.value, batches),
                        .bulk = *config.sampler.bulk.value,
                        .seed = static_cast<std::uint64_t>(config.train.seed)};
  epoch.tables.clear();
  for (const auto& table : tables) epoch.tables.push_back(table.held);
  if (job.training && config.model.edge_features) epoch.edges = edge_table(job.graph).held;
  epoch.trains_embeddings = network_shape(job.graph, config).input_gradient;
  epoch.steps_late = config.run.overlap ? std::max<std::int64_t>(1, config.run.prefetch_steps - 1) : 0;
  return epoch;
}

std::vector<EvaluationWork> estimate_evaluations(const JobSize& job, const PlannedEpoch& epoch,
                                                 double longest_row) {
  const auto replication = static_cast<std::int64_t>(epoch.replication);
  std::vector<EvaluationWork> layers;
  const auto& graph = job.graph;
  const auto entries = static_cast<double>(job.config.model.layers > 0 ? graph.edges : 0);
  for (std::size_t layer = 1; job.training && layer <= epoch.shape.fanout.size(); ++layer) {
    layers.push_back(estimate_evaluation(static_cast<double>(graph.nodes), entries,
                                         entries > 0 ? longest_row : 0, epoch.rows(), epoch.replication,
                                         evaluation_chunks(job, replication, layer)));
    if (layer > 1) continue;
    auto& first = layers.back();
    first.table_shares.clear();  // as if types were met in proportion to their vertices
    for (const auto& table : epoch.tables)
      first.table_shares.push_back(static_cast<double>(table.count(graph.nodes)) /
                                   static_cast<double>(std::max<std::int64_t>(1, graph.nodes)));
  }
  return layers;
}

namespace {

// The largest number in [1, most] that fits, by bisection; 0: none does.
template <class Fits>
std::int64_t largest_that(Fits fits, std::int64_t most) {
  if (!fits(1)) return 0;
  if (fits(most)) return most;
  std::int64_t low = 1, high = most;
  while (low + 1 < high) {
    const auto middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace

bool fits_device(const PlannedJob& planned) {
  return !planned.job.gpu || bytes_on_device(planned.job, planned.epoch.replication) <=
                                 static_cast<double>(planned.job.device_memory);
}

// With its minibatches.
static bool fits(const PlannedJob& planned, double bytes) {
  if (peak_memory(planned).bytes() > bytes) return false;
  return !planned.job.gpu ||
         bytes_on_device(planned.job, planned.epoch.replication) + minibatches_on_device(planned) <=
             static_cast<double>(planned.job.device_memory);
}

// A step under way takes its memory.
std::int64_t largest_depth(const PlannedJob& planned, double bytes) {
  const auto fits = [&](std::int64_t depth) {
    auto other = planned;
    other.job.config.run.prefetch_steps = depth;
    return espalier::fits(other, bytes);
  };
  return largest_that(fits, planned.job.config.run.prefetch_steps);
}

// What a window holds grows with its minibatches.
std::int64_t largest_bulk(const PlannedJob& planned, double bytes) {
  const auto fits = [&](std::int64_t bulk) {
    auto other = planned;
    other.epoch.bulk = bulk;
    auto& work = other.work;
    work.stacked = count_batches(bulk, planned.job.ranks);
    const double more = static_cast<double>(work.stacked) /
                        static_cast<double>(std::max<std::int64_t>(1, planned.work.stacked));
    const auto& graph = planned.job.graph;
    for (auto& product : work.window) {
      product.distinct = std::min(more * product.distinct, static_cast<double>(graph.nodes));
      product.distinct_entries =
          std::min(more * product.distinct_entries, static_cast<double>(graph.edges + graph.nodes));
      product.row_entries *= more;
      product.sums *= more;
    }
    return espalier::fits(other, bytes);
  };
  return largest_that(fits, planned.work.batches);
}

}  // namespace espalier
