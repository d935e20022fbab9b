#include "peak_memory.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "espalier/nn/convolution.hpp"
#include "espalier/train/evaluator.hpp"

namespace espalier {

namespace {

// What the formulas share. Numbers are doubles, sizes bytes.
struct Estimate {
  const JobSize& job;
  const PlannedEpoch& epoch;
  const EpochWork& work;
  const std::vector<EvaluationWork>& evaluations;
  int threads;

  double n() const { return static_cast<double>(job.graph.nodes); }
  double block_rows() const { return n() / epoch.rows(); }
  double id() const { return n() < 2147483648.0 ? 4 : 8; }
  double value() const { return has_values() ? 4 : 0; }
  bool has_values() const {
    return job.graph.weighted || job.config.model.kind == "gcn" ||
           sampler_kind_of(job.config.sampler.kind).layer_wise;
  }
  double result_value() const {
    return sampler_kind_of(job.config.sampler.kind).weighs_picks || job.config.model.kind == "gcn" ? 4 : 0;
  }
  std::size_t layers() const { return job.config.sampler.fanout.size(); }
  double width(std::size_t layer) const {  // of H[layer]
    if (layer == 0) return static_cast<double>(job.graph.features);
    return static_cast<double>(layer == layers() ? job.graph.classes : job.config.model.hidden);
  }
  double stored_row() const {
    return static_cast<double>(job.graph.features) * (job.graph.half_features ? 2 : 4);
  }
  double minibatches_per_step() const {
    const auto per_step = std::min(epoch.batches_per_step, work.batches);
    return static_cast<double>((per_step + epoch.ranks - 1) / epoch.ranks);
  }
  double remote() const { return epoch.rows() > 1 ? crossing(epoch.rows()) : 0; }
};

// An open-addressing table for so many ids (base/id_map.hpp).
double id_map_bytes(double ids) {
  return 16.0 * static_cast<double>(std::bit_ceil(static_cast<std::uint64_t>(2 * ids + 2)));
}

// One minibatch: its vertices and blocks (sample/minibatch.hpp).
double minibatch_bytes(const MinibatchSize& size) {
  double bytes = 8 * size.rows[0];
  for (std::size_t layer = 1; layer < size.rows.size(); ++layer)
    bytes += 8 * size.rows[layer] + 8 * size.entries[layer];
  return bytes;
}

double window_bytes(const Estimate& e) {
  return static_cast<double>(e.work.stacked) * minibatch_bytes(e.work.mean) * (e.job.samples_ahead ? 2 : 1);
}

// ---- sampling: dist/{pull,push,staged,fetch_rows,inquiry}.cpp, of the product number k ----

// Results of a product: offsets, ids, values.
double results_bytes(const Estimate& e, double rows, double entries) {
  return 8 * rows + (e.id() + e.result_value()) * entries;
}

// Rows fetched from their owners, and as many sent to others: asked for, packed, received.
double fetch_rows_bytes(const Estimate& e, double rows, double distinct, double distinct_entries) {
  const double away = crossing(e.epoch.parts());
  const double packed = (e.id() + e.value()) * distinct_entries * away;
  const double asking = id_map_bytes(rows) + 24 * distinct;
  const double fetching = 12 * rows + (2 * e.id() + 16) * distinct * away + 2 * packed;
  const double working = packed + 24 * distinct + 40 * rows;
  return 16 * rows + std::max({asking, fetching, working});
}

double served_bytes(const Estimate& e, double rows, double entries, double entry_bytes) {
  return (8 + 8 + 2 * e.id() + 16 + 24) * rows + 3 * (8 * rows + entry_bytes * entries);
}

double product_bytes(const Estimate& e, std::size_t k) {
  const auto layer = e.layers() - k;
  const auto stacked = static_cast<double>(e.work.stacked);
  const double rows = stacked * e.work.mean.rows[layer], entries = stacked * e.work.mean.entries[layer];
  const bool layer_wise = sampler_kind_of(e.job.config.sampler.kind).layer_wise;
  const double entry = layer_wise ? 4 + e.value() : e.id() + e.result_value();
  const double results = (8 * rows + entry * entries) * (e.threads > 1 ? 2 : 1);
  if (e.epoch.parts() == 1)
    return layer_wise ? 64 * rows + results + 12 * e.work.sums[k] / std::max(stacked, 1.0)
                      : e.threads * results / std::max(stacked, 1.0);
  const double sums = 3.5 * 12 * e.work.sums[k];
  switch (e.work.schedules[k]) {
    case Schedule::kPush:
      return served_bytes(e, rows, entries, entry) + sums;
    case Schedule::kStaged:
    case Schedule::kStagedOblivious: {
      const double fetched = fetch_rows_bytes(e, rows, e.work.distinct[k], e.work.distinct_entries[k]);
      const double whole = layer_wise ? entries : e.work.row_entries[k];
      return fetched + served_bytes(e, rows, whole, layer_wise ? entry : e.id() + e.value()) + results + sums;
    }
    default:
      return fetch_rows_bytes(e, rows, e.work.distinct[k], e.work.distinct_entries[k]) + results;
  }
}

double sampling_bytes(const Estimate& e) {
  double most = 0;
  for (std::size_t k = 0; k < e.layers(); ++k) most = std::max(most, product_bytes(e, k));
  const double marks = e.threads * (2.5 * e.n() / 8 + 4 * e.work.largest.rows[0]);
  return most + marks;
}

// ---- a step ----

bool gathers(const Estimate& e) {
  const double input_dropout = e.job.config.model.input_dropout.value.value_or(
      e.job.config.model.kind == "gcn" ? e.job.config.model.dropout : 0);
  const auto& size = e.work.largest;
  return e.epoch.rows() == 1 && input_dropout == 0 &&
         cheaper_order(BlockSize{size.rows[1], size.rows[0], size.entries[1]}, e.job.graph.features,
                       static_cast<std::int64_t>(e.width(1)), false) == Order::kAggregateFirst;
}

// feature/store.cpp: places, ids asked of others and by others, rows packed and received, rows in float32.
double fetch_bytes(const Estimate& e) {
  const double rows =
      e.minibatches_per_step() * (gathers(e) ? e.work.largest.rows[1] : e.work.largest.rows[0]);
  return 8 * rows * 1.5 + rows * e.remote() * (16 + 2 * e.stored_row()) +
         4.0 * rows * static_cast<double>(e.job.graph.features) * (e.job.config.run.overlap ? 2 : 1);
}

// nn/network_passes.hpp: of each layer the product and its result, gradients of two layers, a transposed block.
double activation_bytes(const Estimate& e) {
  const auto& size = e.work.largest;
  const auto& model = e.job.config.model;
  double floats = 0, transposed = 0, odd = 0, even = 0;
  for (std::size_t layer = 1; layer <= e.layers(); ++layer) {
    const double in = e.width(layer - 1), out = e.width(layer), rows = size.rows[layer],
                 columns = size.rows[layer - 1];
    const auto order =
        cheaper_order(BlockSize{rows, columns, size.entries[layer]}, static_cast<std::int64_t>(in),
                      static_cast<std::int64_t>(out), layer > 1);
    floats += order == Order::kMultiplyFirst ? columns * out : rows * in;
    floats += rows * out * (model.normalize != "none" && layer < e.layers() ? 2 : 1);
    if (layer > 1 || order == Order::kMultiplyFirst)
      transposed = std::max(transposed, 8 * columns + 8 * size.entries[layer]);
    if (layer > 1)
      ((e.layers() - layer) % 2 == 0 ? even : odd) =
          std::max((e.layers() - layer) % 2 == 0 ? even : odd, columns * in);
  }
  const double dropped = model.input_dropout.value.value_or(model.kind == "gcn" ? model.dropout : 0) > 0
                             ? size.rows[0] * e.width(0)
                             : 0;
  return 4 * (floats + odd + even + dropped) + transposed;
}

double model_bytes(const Estimate& e) {
  const double parameters = network_size(e.job.graph, e.job.config.model).parameters;
  const bool exact = e.job.config.train.reproducible;
  const double state = e.job.config.train.optimizer == "adam" ? 2 : 1;
  // Weights, optimiser, gradients, best weights; a flat gradient per minibatch of a step, and their sum.
  return parameters * (4 * (3 + state) + (exact ? 4 * e.minibatches_per_step() + 8 : 4));
}

// ---- evaluation: train/whole_graph.hpp ----

double evaluation_bytes(const Estimate& e) {
  const double c = e.epoch.replication, share = e.block_rows() / c;
  double most = 0, scratch = 0, kept_fetch = 0;
  for (std::size_t layer = 1; layer <= e.layers(); ++layer) {
    const auto& chunk = e.evaluations[layer - 1];
    const double in = e.width(layer - 1), out = e.width(layer);
    const double rows = std::min(static_cast<double>(chunk_rows(e.job, e.epoch.replication, layer)), share);
    const bool multiply_first = out < in;
    const double remote = chunk.most_remote_rows / std::max<double>(1, static_cast<double>(chunk.chunks));
    const double row = layer == 1 ? e.stored_row() : 4 * in;
    const double fetch = 12 * chunk.largest_input + remote * (16 + 2 * row);
    scratch = std::max(
        scratch, 4 * chunk.largest_input * in + 4 * (multiply_first ? chunk.largest_input * out : rows * in));
    const double sampled = 8 * chunk.largest_input + 16 * rows + 8 * chunk.largest_entries +
                           (e.id() + (e.job.config.model.kind == "gcn" ? 4 : 0)) * chunk.largest_entries;
    const double asking = e.epoch.parts() > 1 ? id_map_bytes(rows) + 80 * rows : 0;
    const double input = layer == 1 ? 0 : 4 * e.block_rows() * in;
    const double mine = 4 * share * out, block = c > 1 ? 4 * e.block_rows() * out : 0;
    const double output = chunk.chunks > 1 ? 4 * rows * out : 0;
    most = std::max(
        most, input + mine + kept_fetch + fetch + scratch + std::max({block, sampled + output, asking}));
    if (layer == 1) kept_fetch = fetch;
  }
  return most;
}

// ---- what stays ----

double labels_bytes(const Estimate& e) {
  const auto& g = e.job.graph;
  const double splits = 8.0 * static_cast<double>(g.valid + g.test) / e.epoch.rows();
  const double training = 8.0 * static_cast<double>(g.train);
  const double order = 8.0 * static_cast<double>(g.train);  // the epoch's shuffle
  if (!e.job.training) return training + order;
  return training + order + 4.0 * static_cast<double>(g.train) + 4 * e.block_rows() + splits;
}

double sampler_bytes(const Estimate& e) {
  return e.job.config.sampler.kind == "fastgcn" ? 8 * e.n() / e.epoch.parts() : 0;
}

}  // namespace

std::int64_t chunk_rows(const JobSize& job, std::int64_t replication, std::size_t layer) {
  const double degree =
      static_cast<double>(job.graph.edges) / static_cast<double>(std::max<std::int64_t>(1, job.graph.nodes));
  return evaluation_chunk_rows(degree, layer == 1 ? job.graph.features : job.config.model.hidden,
                               evaluation_memory(job, replication));
}

double MemoryPhase::total() const {
  return std::accumulate(items.begin(), items.end(), 0.0,
                         [](double sum, const MemoryItem& item) { return sum + item.bytes; });
}

const MemoryPhase& PeakMemory::fullest() const {
  return *std::ranges::max_element(phases, {}, [](const MemoryPhase& phase) { return phase.total(); });
}

PeakMemory peak_memory(const JobSize& job, const PlannedEpoch& epoch, const EpochWork& work,
                       const std::vector<EvaluationWork>& layers, double program, int threads) {
  const Estimate e{job, epoch, work, layers, threads};
  const auto resident = resident_memory(job.graph, job.config, job.ranks, epoch.replication, job.training);
  std::vector<MemoryItem> stays = {{"program, libraries, MPI", program}, {"graph", resident.topology}};
  PeakMemory peak;
  const auto phase = [&](const char* name, std::vector<MemoryItem> items) {
    items.insert(items.begin(), stays.begin(), stays.end());
    std::erase_if(items, [](const MemoryItem& item) { return item.bytes <= 0; });
    peak.phases.push_back({name, std::move(items)});
  };
  const double wide =
      job.graph.wide_indices && e.id() == 4 ? 8.0 * static_cast<double>(job.graph.edges) / epoch.parts() : 0;
  phase("load", {{"graph as read", std::max({resident.loading, wide, 2 * sampler_bytes(e)})}});
  stays.push_back({"labels, splits", labels_bytes(e) + sampler_bytes(e)});
  if (job.training) {
    stays.push_back({"features", resident.features});
    stays.push_back({"network and optimiser", model_bytes(e)});
  }
  const bool again = job.training && (job.config.train.epochs > 1 || epoch.bulk < work.batches);
  const double step = job.training && !job.gpu ? fetch_bytes(e) : 0,
               activations = job.training && !job.gpu ? activation_bytes(e) : 0;
  const double window = job.gpu ? 0 : window_bytes(e);
  phase("sample", {{"minibatches of a window", window},
                   {"sampling", job.gpu ? 0 : sampling_bytes(e)},
                   {"exchange", resident.exchange},
                   {"input rows of a step", again ? step : 0},
                   {"activations", again ? activations : 0}});
  if (!job.training) return peak;
  phase("step",
        {{"minibatches of a window", window}, {"input rows of a step", step}, {"activations", activations}});
  phase("evaluate", {{"evaluation", job.gpu ? 0 : evaluation_bytes(e)},
                     {"input rows of a step", step},
                     {"activations", activations}});
  return peak;
}

}  // namespace espalier
