// What an epoch asks for (counted_work.hpp) where nothing is drawn: from degrees alone.
#include <algorithm>
#include <cmath>

#include "espalier/base/index_type.hpp"
#include "espalier/sample/epoch_plan.hpp"
#include "expected_work.hpp"
#include "spread_weights.hpp"

namespace espalier {

namespace {

// Sizes of a minibatch as the work of one batch implies them.
MinibatchSize expected_size(const std::vector<ProductWork>& layers, double input_rows) {
  const auto count = layers.size();
  MinibatchSize size = {std::vector<double>(count + 1, 0), std::vector<double>(count + 1, 0)};
  for (std::size_t k = 0; k < count; ++k) {
    size.rows[count - k] = layers[k].rows;
    size.entries[count - k] = layers[k].results;
  }
  size.rows[0] = input_rows;
  return size;
}

}  // namespace

EpochWork estimate_epoch(const DegreeHistogram& degrees, int value_bytes, const PlannedEpoch& job,
                         std::int64_t seeds) {
  const auto rows = row_classes(degrees, job.shape.fanout);
  const auto& kind = sampler_kind_of(job.sampler);
  const auto n = static_cast<std::int64_t>(rows.rows());
  const auto product = product_shape(job, rows.rows(), rows.entries(), index_bytes(n), value_bytes);
  EpochWork work;
  work.schedules = choose_schedules(product, job.shape, rows, kind);
  work.batches = count_batches(seeds, job.shape.batch_size);

  auto shape = job.shape;
  shape.batch_size = std::min(shape.batch_size, std::max<std::int64_t>(seeds, 1));
  const auto layers_of = [&](double batches) {
    return expected_layers(rows, kind, shape, job.parts(), batches);
  };
  const auto [of_batch, input_rows] = layers_of(1);
  work.mean = work.largest = expected_size(of_batch, input_rows);
  work.scanned.assign(of_batch.size() + 1, 0);
  for (std::size_t k = 0; k < of_batch.size(); ++k)
    work.scanned[of_batch.size() - k] = of_batch[k].row_entries;
  const auto all = static_cast<double>(seeds) / static_cast<double>(shape.batch_size);
  work.input_rows = all * work.mean.rows[0];
  // As if types were met in proportion to their vertices.
  for (const auto& table : job.tables) {
    const double share =
        static_cast<double>(table.count(n)) / static_cast<double>(std::max<std::int64_t>(n, 1));
    work.mean.fetched.push_back(share * work.mean.rows[0]);
    work.remote_input_rows.emplace_back(
        static_cast<std::size_t>(job.ranks),
        job.rows() > 1 ? share * work.input_rows * crossing(job.rows()) / job.ranks : 0);
  }
  work.largest.fetched = work.mean.fetched;
  if (job.trains_embeddings) {
    const auto learnt = static_cast<double>(job.tables.back().count(n));
    expect_changes(work.mean.fetched.back() / std::max(learnt, 1.0), job, work, learnt);
  }
  for (const auto entries : work.mean.entries) work.sampled_edges += all * entries;
  // As if relations were met alike.
  if (!job.edges.empty()) {
    double read = 0;
    for (const auto one : job.edges) read += one;
    read /= static_cast<double>(job.edges.size());
    for (const auto entries : work.mean.entries) work.mean.edges += read * entries;
    work.largest.edges = work.mean.edges;
    work.remote_edges.assign(
        static_cast<std::size_t>(job.ranks),
        job.rows() > 1 ? read * work.sampled_edges * crossing(job.rows()) / job.ranks : 0);
  }

  const auto windows = static_cast<double>(count_batches(work.batches, job.bulk));
  work.stacked = count_batches(std::min(job.bulk, work.batches), job.ranks);
  size_products(work, job);
  const auto of_window = layers_of(all / windows / job.ranks).work;
  // Schedule staged: the c owner ranks of a process row fetch together.
  const auto of_row = layers_of(all / windows / job.rows()).work;
  work.window = of_window;
  for (std::size_t k = 0; k < of_window.size(); ++k) {
    for (std::size_t s = 0; k < products_of(job) && s < kMovingSchedules.size(); ++s) {
      auto of_schedule = of_window[k];
      if (kMovingSchedules[s] == Schedule::kStaged) {
        of_schedule.distinct = of_row[k].distinct / job.replication;
        of_schedule.distinct_entries = of_row[k].distinct_entries / job.replication;
      }
      std::ranges::fill(work.products[s][k],
                        windows * product_cost(kMovingSchedules[s], product, of_schedule));
    }
  }
  if (kind.spreads_weights && job.parts() > 1) {
    double points = 0;
    for (std::size_t k = 0; k < job.shape.fanout.size(); ++k)
      points += static_cast<double>(drawn_of_layer(job.shape, k));
    work.draws = find_cost(job.parts(), points * all / job.ranks);
  }
  return work;
}

MinibatchSize rough_size(const SamplerKind& kind, std::span<const std::int64_t> picks, double seeds,
                         double nodes, double mean_degree) {
  const auto layers = picks.size();
  MinibatchSize size = {std::vector<double>(layers + 1, 0), std::vector<double>(layers + 1, 0)};
  double rows = seeds;
  for (std::size_t k = 0; k < layers; ++k) {
    const double degree = k == 0 ? mean_degree : 4 * mean_degree + 1,
                 wanted = picks[k] < 0 ? nodes : std::min(static_cast<double>(picks[k]), nodes);
    size.rows[layers - k] = rows;
    size.entries[layers - k] = rows * std::min(wanted, degree);
    // As if edges ended anywhere.
    const double found = kind.induces      ? 0
                         : kind.layer_wise ? wanted
                                           : -nodes * std::expm1(-size.entries[layers - k] / nodes);
    rows = std::min(nodes, rows + found);
  }
  size.rows[0] = rows;
  return size;
}

}  // namespace espalier
