// What an epoch asks for when nothing can be drawn: from the degrees of the matrix
// (counted_work.hpp).
#include <algorithm>
#include <cmath>

#include "espalier/base/index_type.hpp"
#include "espalier/sample/epoch_plan.hpp"
#include "planned_epoch.hpp"
#include "spread_weights.hpp"

namespace espalier {

namespace {

DegreeMoments moments_of(const DegreeHistogram& degrees, std::span<const std::int64_t> fanout) {
  DegreeMoments moments;
  double squares = 0;
  moments.picks.assign(fanout.size(), 0);
  moments.neighbour_picks.assign(fanout.size(), 0);
  for (const auto& of : degrees) {
    const auto d = static_cast<double>(of.degree), vertices = static_cast<double>(of.vertices);
    moments.rows += vertices;
    moments.entries += vertices * d;
    squares += vertices * d * d;
    for (std::size_t k = 0; k < fanout.size(); ++k) {
      const double picks = fanout[k] < 0 ? d : std::min(static_cast<double>(fanout[k]), d);
      moments.picks[k] += vertices * picks;
      moments.neighbour_picks[k] += vertices * picks * d;
    }
  }
  const double rows = std::max(moments.rows, 1.0), ends = std::max(moments.entries, 1.0);
  moments.mean = moments.entries / rows;
  moments.neighbour = squares / ends;
  for (auto& picks : moments.picks) picks /= rows;
  for (auto& picks : moments.neighbour_picks) picks /= ends;
  return moments;
}

// Vertices of one degree, how likely one of them is in the frontier of a batch, and which share of
// such a one's neighbours an earlier layer has drawn for it.
struct DegreeClass {
  double degree = 0, vertices = 0, included = 0, covered = 0;
};

std::vector<DegreeClass> classes_of(const DegreeHistogram& degrees, double rows, double seeds) {
  std::vector<DegreeClass> classes;
  const double share = std::min(1.0, seeds / std::max<double>(1, rows));
  for (const auto& of : degrees)
    classes.push_back({static_cast<double>(of.degree), static_cast<double>(of.vertices), share, 0});
  return classes;
}

template <class Term>
double sum_over(const std::vector<DegreeClass>& classes, const Term& term) {
  double sum = 0;
  for (const auto& of : classes) sum += of.vertices * term(of);
  return sum;
}

// The work of one layer of `batches` batches, after which `classes` are those of the next frontier.
// Ends of edges fall on vertices in proportion to their degrees.
ProductWork expected_layer(std::vector<DegreeClass>& classes, double fanout, double batches,
                           const PlannedEpoch& job) {
  const auto& kind = sampler_kind_of(job.sampler);
  const double edges = std::max(1.0, sum_over(classes, [](const auto& of) { return of.degree; }));
  const auto picked = [&](const DegreeClass& of) {
    return fanout < 0 ? of.degree : std::min(fanout, of.degree);
  };
  const auto met = [&](double ends) {  // by one of so many ends of edges
    return [=](const DegreeClass& of) { return -std::expm1(-ends * of.degree / edges); };
  };
  const auto stacked = [&](const DegreeClass& of) {
    return -std::expm1(batches * std::log1p(-std::min(of.included, 1 - 1e-12)));
  };
  const double rows = sum_over(classes, [](const auto& of) { return of.included; });
  const double entries = sum_over(classes, [](const auto& of) { return of.included * of.degree; });
  ProductWork work;
  work.batches = batches;
  work.rows = batches * rows;
  work.row_entries = batches * entries;
  work.distinct = sum_over(classes, stacked);
  work.distinct_entries = sum_over(classes, [&](const auto& of) { return of.degree * stacked(of); });
  work.result_value_bytes = has_result_values(job) ? 4 : 0;
  double ends = sum_over(classes, [&](const auto& of) { return of.included * picked(of); });
  work.results = batches * ends;
  if (kind.induces) {
    const double share = rows / std::max(1.0, sum_over(classes, [](const auto&) { return 1.0; }));
    work.picks = batches * rows;
    work.results = batches * entries * share;
    return work;
  }
  if (kind.layer_wise) {
    const double support = sum_over(classes, met(kind.sums_rows ? entries : 1e3 * edges));
    const double picks = fanout < 0 ? support : std::min(fanout, support);
    double low = 0, high = edges;  // as many ends as meet so many vertices
    for (int step = 0; step < 60; ++step) {
      ends = (low + high) / 2;
      (sum_over(classes, met(ends)) < picks ? low : high) = ends;
    }
    work.picks = batches * picks;
    work.results = batches * entries *
                   sum_over(classes, [&](const auto& of) { return of.degree / edges * met(ends)(of); });
    if (kind.sums_rows) work.sums = batches * job.parts() * sum_over(classes, met(entries / job.parts()));
  } else {  // who draws from a row again meets some of the same
    ends = sum_over(classes, [&](const auto& of) { return of.included * picked(of) * (1 - of.covered); });
  }
  for (auto& of : classes) {
    const double before = of.included;
    of.included += (1 - of.included) * met(ends)(of);
    const double drawn = of.degree > 0 ? picked(of) / of.degree : 0;
    of.covered = of.included > 0 ? before * (of.covered + (1 - of.covered) * drawn) / of.included : 0;
  }
  return work;
}

std::vector<ProductWork> expected_layers(std::vector<DegreeClass> classes, double batches,
                                         const PlannedEpoch& job, double* input_rows) {
  std::vector<ProductWork> layers;
  const bool layer_wise = sampler_kind_of(job.sampler).layer_wise;
  for (std::size_t k = 0; k < job.shape.fanout.size(); ++k) {
    const auto fanout = layer_wise ? most_of_layer(job.shape, k) : job.shape.fanout[k];
    layers.push_back(expected_layer(classes, static_cast<double>(fanout), batches, job));
  }
  *input_rows = sum_over(classes, [](const auto& of) { return of.included; });
  return layers;
}

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
  const auto moments = moments_of(degrees, job.shape.fanout);
  const auto n = static_cast<std::int64_t>(moments.rows);
  const auto product = product_shape(job, moments.rows, moments.entries, index_bytes(n), value_bytes);
  EpochWork work;
  work.schedules = choose_schedules(product, job.shape, expected_work(moments, job, job.shape));
  work.batches = count_batches(seeds, job.shape.batch_size);

  auto shape = job.shape;
  shape.batch_size = std::min(shape.batch_size, std::max<std::int64_t>(seeds, 1));
  const auto classes = classes_of(degrees, moments.rows, static_cast<double>(shape.batch_size));
  double input_rows = 0;
  const auto of_batch = expected_layers(classes, 1, job, &input_rows);
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
  if (job.learns_rows) {
    const auto rows = job.tables.back().count(n);
    expect_changes(work.mean.fetched.back() / static_cast<double>(std::max<std::int64_t>(rows, 1)), job, work,
                   static_cast<double>(rows));
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
  const auto of_window = expected_layers(classes, all / windows / job.ranks, job, &input_rows);
  // Schedule staged: the c keepers of a process row fetch together.
  const auto of_row = expected_layers(classes, all / windows / job.rows(), job, &input_rows);
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
  if (sampler_kind_of(job.sampler).spreads_weights && job.parts() > 1) {
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
