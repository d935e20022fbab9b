#include "espalier/plan/stage_model.hpp"

#include <algorithm>
#include <cmath>

#include "espalier/base/index_type.hpp"
#include "espalier/feature/cache_policy.hpp"
#include "espalier/feature/edge_store.hpp"
#include "espalier/feature/fetch_model.hpp"
#include "espalier/feature/input_tables.hpp"
#include "espalier/nn/network_work.hpp"
#include "espalier/plan/job_shapes.hpp"
#include "espalier/sample/epoch_plan.hpp"
#include "espalier/train/gradient_reduction.hpp"
#include "espalier/train/task.hpp"

namespace espalier {

namespace {

double steps_of(const PlannedJob& in) {
  return static_cast<double>(count_batches(in.work.batches, in.epoch.batches_per_step));
}

double id_bytes(const PlannedJob& in) {
  return index_bytes(in.job.graph.nodes);
}

std::vector<InputTable> tables_of(const PlannedJob& in) {
  return input_tables(in.job.graph, in.job.config);
}

NetworkShape network_of(const PlannedJob& in) {
  return network_shape(in.job.graph, in.job.config);
}

double width_of(const PlannedJob& in, std::size_t layer) {  // of H[layer]; of 0 on average
  double width = 0;
  const auto tables = tables_of(in);
  for (std::size_t k = 0; layer == 0 && k < tables.size(); ++k)
    width += in.work.mean.fetched[k] / std::max(1.0, in.work.mean.rows[0]) *
             static_cast<double>(tables[k].fetched_width());
  if (layer == 0) return width;
  return static_cast<double>(network_layers(network_of(in))[layer - 1].layer.out);
}

// feature/embedding_store.hpp, of a rank in a step: gradients of rows on their way to the shards,
// rows that changed on their way to the copies; row_store.hpp: those that were fetched too early.
Cost update_cost(const PlannedJob& in, const InputTable& table, double sent) {
  const int rows = in.epoch.rows(), c = in.epoch.replication;
  const double id = id_bytes(in), row = static_cast<double>(table.row_bytes()), ranks = in.epoch.ranks;
  auto cost = row_update_cost(rows, c, sent, in.work.changed_rows / ranks, id, row);
  if (in.epoch.steps_late > 0)
    cost += row_correction_cost(rows, in.work.corrected_rows * crossing(rows) / ranks, id, row);
  return cost;
}

// feature/input_caches.hpp: how often ranks tell each other of coming steps, and of how many in
// all; a step with minibatches of two windows twice.
struct Foretellings {
  double times = 0, steps = 0;
};
Foretellings foretellings(const PlannedJob& in) {
  const auto batches = in.work.batches, together = in.epoch.batches_per_step, bulk = in.epoch.bulk;
  Foretellings sum;
  std::int64_t told = 0;  // batches below
  for (std::int64_t step = 0; step * together < batches; ++step) {
    const auto end = std::min(batches, (step + 1) * together),
               sampled = std::min(batches, count_batches(end, bulk) * bulk);
    if (sampled <= told) continue;
    told = sampled;
    ++sum.times;
    sum.steps += static_cast<double>(count_batches(sampled, together) - step);
  }
  return sum;
}

// What that costs, where a rank has to choose which rows on its disk it keeps.
std::vector<Cost> foretelling_costs(const PlannedJob& in) {
  const auto& config = in.job.config;
  const int rows = in.epoch.rows();
  std::vector<Cost> costs;
  if (rows == 1 || !config.graph.features_on_disk() || cache_memory(config.run) == 0 ||
      cache_rule_of(config.run.cache_policy) != CacheRule::kBelady)
    return costs;
  costs.resize(in.epoch.ranks);
  const auto told = foretellings(in);
  const auto tables = tables_of(in);
  for (std::size_t k = 0; k < tables.size(); ++k)
    for (std::size_t rank = 0; rank < costs.size() && !tables[k].trainable; ++rank)
      costs[rank] +=
          foretelling_cost(rows, in.work.remote_input_rows[k][rank], id_bytes(in), told.steps, told.times);
  return costs;
}

// train/trainer.hpp: every step asks once for the rows of its minibatches, of each table.
std::vector<Cost> fetch_costs(const PlannedJob& in) {
  const int rows = in.epoch.rows();
  std::vector<Cost> costs(in.epoch.ranks);
  const auto empty = feature_fetch_cost(rows, 0, 0, 0);
  // `remote`: rows of others that each rank needs.
  const auto add = [&](const std::vector<double>& remote, double id, double row) {
    for (std::size_t rank = 0; rank < costs.size() && rows > 1; ++rank) {
      costs[rank] += steps_of(in) * empty;
      costs[rank].bytes +=
          feature_fetch_cost(rows, remote[rank] / crossing(rows), id, row).bytes - empty.bytes;
    }
  };
  const auto tables = tables_of(in);
  for (std::size_t k = 0; k < tables.size(); ++k) {
    if (tables[k].trainable && in.epoch.ranks > 1) {
      const double steps = steps_of(in),
                   sent = in.work.mean.fetched[k] * static_cast<double>(in.work.batches) / in.epoch.ranks;
      for (auto& cost : costs) cost += steps * update_cost(in, tables[k], sent / steps);
    }
    add(in.work.remote_input_rows[k], id_bytes(in), static_cast<double>(tables[k].row_bytes()));
  }
  if (in.epoch.edges.empty()) return costs;
  // feature/edge_store.hpp: and once for the features of their edges.
  const auto& graph = in.job.graph;
  add(in.work.remote_edges, index_bytes(graph.nodes * graph.columns),
      static_cast<double>(edge_table(graph).row_bytes()));
  return costs;
}

// train/gradient_reduction.hpp: floats, or integers after a bound for each tensor, piece by piece;
// statistics in the same way.
Cost reduce_cost(const PlannedJob& in) {
  const auto network = network_of(in);
  const auto size = network_size(network);
  const auto groups = gradient_groups(network);
  const bool exact = in.job.config.train.reproducible;
  Cost step;
  const auto reduce = [&](double numbers, std::int64_t tensors) {
    if (tensors == 0) return;
    if (exact) step += all_reduce_cost(8 * tensors, in.epoch.ranks);
    step += all_reduce_cost(static_cast<std::int64_t>((exact ? 8 : 4) * numbers), in.epoch.ranks);
  };
  std::size_t group = 0;
  for (const auto end : in.job.gpu ? std::vector{groups.size()} : reduction_pieces(groups, in.epoch.ranks)) {
    GradientGroup piece;
    for (; group < end; ++group) {
      piece.count += groups[group].count;
      piece.numbers += groups[group].numbers;
    }
    reduce(static_cast<double>(piece.numbers), static_cast<std::int64_t>(piece.count));
  }
  const auto divisors = size.statistic_tensors;  // a number for each, in one tensor
  reduce(size.statistics + static_cast<double>(divisors), divisors + (divisors > 0));
  return steps_of(in) * step;
}

// infer/layerwise_pass.inl.hpp: in each layer the chunks' rows down the column, the block's parts
// along the row.
std::vector<Cost> evaluate_costs(const PlannedJob& in) {
  const int p = in.epoch.ranks, rows = in.epoch.rows(), c = in.epoch.replication;
  Cost same, most;
  for (std::size_t layer = 1; layer <= in.evaluations.size(); ++layer) {
    const auto& work = in.evaluations[layer - 1];
    const auto chunks = static_cast<double>(work.chunks);
    same += all_reduce_cost(8, p);
    if (in.epoch.parts() > 1)  // nothing is asked for: counts alone take a message
      same += chunks * Cost{1.0 * (rows - 1), 8.0 * (rows - 1),
                            matrix_has_values(in.job.graph, in.job.config) ? 5.0 : 4.0};
    if (rows > 1) {
      const auto tables = tables_of(in);
      double row = layer == 1 ? 0 : 4 * width_of(in, layer - 1);
      for (std::size_t k = 0; layer == 1 && k < tables.size(); ++k)
        row += work.table_shares[k] * static_cast<double>(tables[k].row_bytes());
      const auto empty = feature_fetch_cost(rows, 0, 0, 0);
      same += static_cast<double>(layer == 1 ? tables.size() : 1) * chunks * empty;
      const auto bytes = [&](double remote) {
        return feature_fetch_cost(rows, remote / crossing(rows), id_bytes(in), row).bytes - empty.bytes;
      };
      same.bytes += bytes(work.remote_rows / p);
      most.bytes += bytes(work.most_remote_rows - work.remote_rows / p);
    }
    if (c > 1 && layer < in.evaluations.size()) {  // rows of the last stay where they are evaluated
      const double block = static_cast<double>(in.job.graph.nodes) / rows;
      same += Cost{1.0 * (c - 1), 4 * block * crossing(c) * width_of(in, layer), 1};
    }
  }
  std::vector<Cost> costs(p, same);
  const auto& task = task_kind_of(in.job.config.train.task);
  for (int rank = 0; rank < p; ++rank)
    costs[rank] += task.evaluating({in.job.graph, in.job.config, p, rows, in.evaluated}, rank);
  // The total is exact; one rank stands for the fullest.
  if (p > 1 && most.bytes > 0) {
    costs[0].bytes += most.bytes;
    for (std::size_t rank = 1; rank < costs.size(); ++rank) costs[rank].bytes -= most.bytes / (p - 1);
  }
  return costs;
}

}  // namespace

std::vector<Cost> sample_costs(const PlannedJob& in, const std::vector<Schedule>& schedules) {
  const auto& task = task_kind_of(in.job.config.train.task);
  const auto windows = static_cast<double>(count_batches(in.work.batches, in.epoch.bulk));
  std::vector<Cost> costs(in.epoch.ranks);
  if (task.preparing != nullptr)
    std::ranges::fill(
        costs, task.preparing({in.job.graph, in.job.config, in.epoch.ranks, in.epoch.rows()}, windows));
  if (in.epoch.parts() == 1) return costs;
  for (std::size_t rank = 0; rank < costs.size(); ++rank) {
    costs[rank] += in.work.draws;
    for (std::size_t k = 0; k < schedules.size(); ++k) {
      const auto s = static_cast<std::size_t>(std::ranges::find(kMovingSchedules, schedules[k]) -
                                              kMovingSchedules.begin());
      costs[rank] += in.work.products[s][k][rank];
    }
  }
  return costs;
}

StageCosts stage_costs(const PlannedJob& in) {
  StageCosts costs;
  costs["sample"] = sample_costs(in, in.work.schedules);
  if (!in.job.training) return costs;
  costs["fetch"] = fetch_costs(in);
  if (const auto told = foretelling_costs(in); !told.empty()) {
    for (std::size_t rank = 0; rank < told.size(); ++rank) costs["fetch"][rank] += told[rank];
    costs[kPrefetched] = told;
  }
  costs["reduce"].assign(in.epoch.ranks, reduce_cost(in));
  costs["evaluate"] = evaluate_costs(in);
  return costs;
}

StageVolume volume_of(const std::vector<Cost>& ranks) {
  Cost sum;
  double most = 0, rounds = 0;
  for (const auto& cost : ranks) {
    sum += cost;
    most = std::max(most, cost.bytes);
    rounds = std::max(rounds, cost.rounds);
  }
  return {.messages = std::llround(sum.messages),
          .total = std::llround(sum.bytes),
          .max_rank = std::llround(most),
          .predicted_messages = sum.messages,
          .predicted = sum.bytes,
          .rounds = std::llround(rounds)};
}

// ---- seconds ----

namespace {

double seconds_of(const LayerWork& work, const Machine& m) {
  return work.flops / (m.gemm_gflops * 1e9) + 4 * work.gathered / (m.spmm_gbs * 1e9) +
         4 * work.elements / (m.elements_gbs * 1e9);
}

double copied(double bytes, const Machine& m) {
  return bytes / (m.rows_gbs * 1e9);
}

// The largest over ranks of what the messages take.
double moved(const std::vector<Cost>& costs, const Link& link) {
  double most = 0;
  for (const auto& cost : costs) most = std::max(most, link.seconds(cost.messages, cost.bytes));
  return most;
}

double most_bytes(const std::vector<Cost>& costs) {
  double most = 0;
  for (const auto& cost : costs) most = std::max(most, cost.bytes);
  return most;
}

struct SecondsModel {
  const PlannedJob& in;
  const StageCosts& costs;
  const Machine& m;

  Link column() const { return link_of(m, in.epoch.ranks, in.epoch.rows(), in.epoch.replication); }
  Link world() const { return link_of(m, in.epoch.ranks, in.epoch.ranks, 1); }
  // Minibatches of the busiest rank.
  double busy() const {
    const auto p = static_cast<std::int64_t>(in.epoch.ranks);
    return steps_of(in) *
           static_cast<double>((std::min(in.epoch.batches_per_step, in.work.batches) + p - 1) / p);
  }

  double sample() const {
    double picks = 0, scanned = 0;
    for (std::size_t layer = 1; layer < in.work.mean.entries.size(); ++layer) {
      picks += in.work.mean.entries[layer];
      scanned += in.work.scanned[layer];
    }
    const auto& kind = sampler_kind_of(in.job.config.sampler.kind);
    // A uniform draw touches what it picks; labor and weighted draws look at whole rows, ladies
    // also sums them.
    const bool whole_rows = kind.layer_wise || kind.weighs_picks || in.epoch.shape.weighted;
    const double batch =
        whole_rows ? scanned * (kind.sums_rows ? 2 : 1) / (m.entries * 1e6) : picks / (m.draws * 1e6);
    const auto& moves = costs.at("sample");
    return busy() * batch + moved(moves, column()) + 2 * copied(most_bytes(moves), m);
  }
  double fetch() const {
    const auto& moves = costs.at("fetch");
    const double rows = in.epoch.rows() > 1 || in.job.gpu ? in.work.mean.rows[0] : in.work.mean.rows[1];
    return busy() * copied(4 * rows * width_of(in, 0), m) + moved(moves, column()) +
           copied(most_bytes(moves), m);
  }
  double network(LayerWork LayerCosts::*pass) const {
    const auto& size = in.work.mean;
    return busy() *
           seconds_of(network_work(network_of(in), pass,
                                   [&](std::size_t layer) -> BlockSize {
                                     return {size.rows[layer], size.rows[layer - 1], size.entries[layer]};
                                   }),
                      m);
  }
  double reduce() const {
    const double numbers = network_size(network_of(in)).parameters;
    return steps_of(in) * numbers / (m.gradients * 1e6) + moved(costs.at("reduce"), world());
  }
  double optimize() const {
    return steps_of(in) * network_size(network_of(in)).parameters / (m.parameters * 1e6);
  }
  double evaluate() const {
    const double share = 1.0 / in.epoch.ranks, nodes = static_cast<double>(in.job.graph.nodes) * share,
                 edges = static_cast<double>(in.job.graph.edges) * share;
    const auto input_of = [&](std::size_t layer) {
      const auto& work = in.evaluations[layer - 1];
      return std::max(nodes, static_cast<double>(work.chunks) * work.largest_input);
    };
    double seconds = moved(costs.at("evaluate"), column()) + copied(most_bytes(costs.at("evaluate")), m);
    seconds += seconds_of(network_work(network_of(in), &LayerCosts::evaluation,
                                       [&](std::size_t layer) -> BlockSize {
                                         return {nodes, input_of(layer), edges};
                                       }),
                          m);
    for (std::size_t layer = 1; layer <= in.evaluations.size(); ++layer)
      seconds += copied(4 * input_of(layer) * width_of(in, layer - 1), m) + edges / (m.draws * 1e6);
    return seconds;
  }
};

}  // namespace

std::map<std::string, double> stage_seconds(const PlannedJob& planned, const StageCosts& costs,
                                            const Machine& machine) {
  auto of_job = machine;
  of_job.gemm_gflops = gemm_rate(machine, planned.job.config.train.precision);
  const SecondsModel model{planned, costs, of_job};
  std::map<std::string, double> seconds = {{"sample", model.sample()}};
  if (planned.job.training) {
    seconds["fetch"] = model.fetch();
    seconds["forward"] = model.network(&LayerCosts::forward);
    seconds["backward"] = model.network(&LayerCosts::backward);
    seconds["reduce"] = model.reduce();
    seconds["optimizer"] = model.optimize();
    seconds["evaluate"] = model.evaluate();
  }
  double total = 0;
  for (const auto& [stage, time] : seconds) total += time;
  seconds["total"] = total;
  return seconds;
}

}  // namespace espalier
