#include "espalier/plan/peak_memory.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "espalier/base/index_type.hpp"
#include "espalier/feature/edge_store.hpp"
#include "espalier/feature/input_tables.hpp"
#include "espalier/feature/row_cache.hpp"
#include "espalier/nn/network_shape.hpp"
#include "espalier/train/evaluator.hpp"
#include "espalier/train/task.hpp"

namespace espalier {

namespace {

// What the formulas share. Numbers are doubles, sizes bytes.
struct Estimate {
  const JobSize& job;
  const PlannedEpoch& epoch;
  const EpochWork& work;
  const std::vector<EvaluationWork>& evaluations;
  int threads;
  LargestPart part;
  std::vector<InputTable> tables = input_tables(job.graph, job.config.model.embedding);

  double n() const { return static_cast<double>(job.graph.nodes); }
  double block_rows() const { return n() / epoch.rows() * part.vertices; }
  double id() const { return index_bytes(job.graph.nodes); }
  double value() const { return has_values() ? 4 : 0; }
  bool has_values() const { return matrix_has_values(job.graph, job.config); }
  double result_value() const {
    return sampler_kind_of(job.config.sampler.kind).weighs_picks || epoch.shape.weighs_picks() ? 4 : 0;
  }
  std::size_t layers() const { return job.config.sampler.fanout.size(); }
  double relations() const { return static_cast<double>(network().relations); }
  NetworkShape network() const { return network_shape(job.graph, job.config); }
  double width(std::size_t layer) const {  // of H[layer], where all vertices have rows of it
    return static_cast<double>(network_layers(network())[layer - 1].layer.out);
  }
  /// The share of a minibatch's vertices that have rows in a table.
  double share(std::size_t table) const {
    return work.mean.rows[0] > 0 ? work.mean.fetched[table] / work.mean.rows[0] : 0;
  }
  /// Columns of the rows of an input vertex, of all tables, and bytes as they are stored.
  double input_width() const {
    double width = 0;
    for (std::size_t k = 0; k < tables.size(); ++k) width += share(k) * static_cast<double>(tables[k].width);
    return width;
  }
  double stored_row() const {
    double bytes = 0;
    for (std::size_t k = 0; k < tables.size(); ++k)
      bytes += share(k) * static_cast<double>(tables[k].row_bytes());
    return bytes;
  }
  bool learns_rows() const { return !tables.empty() && tables.back().learnt; }
  double minibatches_per_step() const {
    const auto per_step = std::min(epoch.batches_per_step, work.batches);
    return static_cast<double>((per_step + epoch.ranks - 1) / epoch.ranks);
  }
  double remote() const { return epoch.rows() > 1 ? crossing(epoch.rows()) : 0; }
};

// Memory of arrays that live at once. The C library takes large ones from the system and gives them
// back when they are freed; smaller ones come from its heap, which keep_freed_memory()
// (base/buffer.hpp) lets it keep.
struct Arrays {
  double heap = 0, mapped = 0;

  /// `count` arrays of so many bytes each.
  Arrays& add(double bytes, double count = 1) {
    constexpr double kMapped = 30 << 20;  // 32 MiB with room to align it to a huge page
    (bytes >= kMapped ? mapped : heap) += count * bytes;
    return *this;
  }
  Arrays& operator+=(const Arrays& other) {
    heap += other.heap;
    mapped += other.mapped;
    return *this;
  }
  double bytes() const { return heap + mapped; }
};

Arrays operator+(Arrays a, const Arrays& b) {
  return a += b;
}
const Arrays& larger(const Arrays& a, const Arrays& b) {
  return a.bytes() < b.bytes() ? b : a;
}

// An open-addressing table for so many ids (base/id_map.hpp).
Arrays id_map(double ids) {
  return Arrays().add(16.0 * static_cast<double>(std::bit_ceil(static_cast<std::uint64_t>(2 * ids + 2))));
}

// The vertices and blocks of `count` minibatches (sample/minibatch.hpp).
Arrays minibatches(const Estimate& e, const MinibatchSize& size, double count) {
  Arrays arrays;
  arrays.add(8 * std::max(size.rows[0], 2 * size.rows[1]), count);  // a list that grew doubles
  for (std::size_t layer = 1; layer < size.rows.size(); ++layer)
    arrays.add(8 * size.rows[layer], count)
        .add(4 * size.entries[layer], 2 * count)
        .add(e.relations() > 1 ? size.entries[layer] : 0, count);
  return arrays;
}

Arrays window(const Estimate& e) {
  return minibatches(e, e.work.mean, static_cast<double>(e.work.stacked) * (e.job.samples_ahead ? 2 : 1));
}

// ---- sampling: product/{pull,push,staged,fetch_rows,inquiry}.cpp, of the product number k ----

// Offsets, ids and values of so many rows.
Arrays row_entries(double rows, double entries, double id_bytes, double value_bytes) {
  return Arrays().add(8 * rows).add(id_bytes * entries).add(value_bytes * entries);
}

// Rows fetched from their owners, and as many packed for others: asked for, packed and received,
// looked at.
Arrays fetched_rows(const Estimate& e, double rows, double distinct, double distinct_entries) {
  const double away = crossing(e.epoch.parts());
  const auto packed = row_entries(distinct * away, distinct_entries * away, e.id(), e.value());
  const auto asking = id_map(rows) + Arrays().add(8 * distinct, 2).add(e.id() * distinct).add(4 * distinct);
  const auto fetching = Arrays().add(8 * rows) + packed + packed;
  const auto working = Arrays().add(24 * distinct).add(24 * rows).add(16 * rows) + packed;
  return Arrays().add(8 * rows, 2) + larger(larger(asking, fetching), working);
}

// A frontier asked of its servers; answers are made and received.
Arrays served_rows(const Estimate& e, double rows, const Arrays& answers) {
  return Arrays().add(8 * rows, 2).add(e.id() * rows, 2).add(16 * rows).add(24 * rows) + answers + answers;
}

Arrays product(const Estimate& e, std::size_t k) {
  const auto layer = e.layers() - k;
  const auto stacked = static_cast<double>(e.work.stacked);
  const double rows = stacked * e.work.mean.rows[layer], entries = stacked * e.work.mean.entries[layer];
  const bool layer_wise = sampler_kind_of(e.job.config.sampler.kind).layer_wise;
  const auto results = layer_wise ? row_entries(rows, entries, 4, e.value())
                                  : row_entries(rows, entries, e.id(), e.result_value());
  if (e.epoch.parts() == 1 && !layer_wise)  // batch by batch: node_wise.cpp, sample_local
    return row_entries(e.work.largest.rows[layer], e.work.largest.entries[layer], e.id(), e.result_value());
  const double sums = e.work.sums[k];
  const auto partial_sums = Arrays().add(12 * sums).add(e.id() * sums, 2).add(8 * sums, 2);
  const auto twice = e.threads > 1 ? results : Arrays();
  if (e.epoch.parts() == 1) return Arrays().add(8 * rows, 2).add(24 * rows) + results + twice;
  const auto fetched = fetched_rows(e, rows, e.work.distinct[k], e.work.distinct_entries[k]);
  switch (e.work.schedules[k]) {
    case Schedule::kPush:
      // In the order of the frontier.
      return served_rows(e, rows, results) + results + partial_sums;
    case Schedule::kStaged:
    case Schedule::kStagedOblivious: {
      const auto whole = layer_wise ? results : row_entries(rows, e.work.row_entries[k], e.id(), e.value());
      return fetched + served_rows(e, rows, whole) + results + partial_sums;
    }
    default:
      return fetched + results + twice;
  }
}

Arrays sampling(const Estimate& e) {
  Arrays most;
  for (std::size_t k = 0; k < e.layers(); ++k) most = larger(most, product(e, k));
  if (sampler_kind_of(e.job.config.sampler.kind).spreads_weights) {
    // fastgcn.cpp: points, intervals, those taken, the axis without them
    double picks = 0;
    for (std::size_t k = 0; k < e.layers(); ++k)
      picks += static_cast<double>(drawn_of_layer(e.epoch.shape, k));
    most.add(96 * picks, static_cast<double>(e.work.stacked));
  }
  return most + Arrays().add(e.n() / 8, 2 * e.threads).add(4 * e.work.largest.rows[0], e.threads);
}

// ---- a step ----

BlockSize block_of(const MinibatchSize& size, std::size_t layer) {
  return {size.rows[layer], size.rows[layer - 1], size.entries[layer]};
}

// feature/row_store.inl.hpp: of `lists` lists of `rows` rows each: sources, rows in float32; with
// other ranks ids by owner, their order and owners, ids asked by others, rows packed and received.
Arrays fetch(const Estimate& e, double lists, double rows, double remote, double stored, double width) {
  auto arrays = Arrays().add(8 * lists * rows).add(4 * rows * width, lists);
  if (remote > 0) arrays.add(e.id() * lists * rows).add(8 * lists * rows).add(4 * lists * rows);
  return arrays.add(e.id() * remote).add(stored * remote, 2);
}

// feature/edge_store.hpp: the same of `count` entries, whose numbers are made first, and which
// entries they are of.
Arrays edges_of(const Estimate& e, double lists, double count, double remote, bool as_floats) {
  const auto table = edge_table(e.job.graph);
  auto arrays = fetch(e, lists, count, remote, static_cast<double>(table.row_bytes()),
                      as_floats ? static_cast<double>(table.width) : 0);
  return arrays.add(8 * count, lists).add(4 * count, lists);
}

Arrays input_rows(const Estimate& e, bool as_floats = true) {
  const double lists = e.minibatches_per_step();
  Arrays arrays;
  for (std::size_t k = 0; k < e.tables.size(); ++k) {
    const double rows = e.work.largest.fetched[k], width = static_cast<double>(e.tables[k].width);
    arrays += fetch(e, lists, rows, lists * rows * e.remote(), static_cast<double>(e.tables[k].row_bytes()),
                    as_floats ? width : 0);
  }
  if (!e.epoch.edges.empty())
    arrays += edges_of(e, lists, e.work.largest.edges, lists * e.work.largest.edges * e.remote(), as_floats);
  return arrays;
}

// feature/embedding_store.inl.hpp: gradients of the minibatches of a step; listed, by owner, come
// down the column, and with copies those along the row; their order.
Arrays embedding_update(const Estimate& e) {
  if (!e.learns_rows()) return {};
  const double lists = e.minibatches_per_step(), rows = e.work.largest.fetched.back(),
               row = 4 * static_cast<double>(e.tables.back().width);
  auto arrays = Arrays().add(rows * row, lists);
  const double all = lists * rows;
  return arrays.add(all * row, e.epoch.replication > 1 ? 4 : 3).add(8 * all, 10);
}

// train/step_pipeline.inl.hpp: what the steps hold that are under way beyond the next one.
Arrays steps_ahead(const Estimate& e) {
  const auto& run = e.job.config.run;
  const double more = run.overlap && run.prefetch_steps > 1 ? static_cast<double>(run.prefetch_steps) : 0;
  const auto step = input_rows(e, false) + minibatches(e, e.work.mean, e.minibatches_per_step());
  return {more * step.heap, more * step.mapped};
}

// nn/network.inl.hpp: what each layer keeps and its result, gradients of two layers, memory that
// their backward passes work in, a transposed block.
Arrays activations(const Estimate& e) {
  const auto& size = e.work.largest;
  const auto network = e.network();
  const auto& kind = layer_kind_of(network.kind);
  Arrays arrays;
  double transposed_rows = 0, transposed_entries = 0, position_bytes = 0;
  std::array<double, 2> gradients = {0, 0};
  std::array<double, kMostLayerArrays> scratch = {};
  for (const auto& made : network_layers(network)) {
    const auto layer = static_cast<std::size_t>(made.layer.number);
    const double in = static_cast<double>(made.layer.in), out = static_cast<double>(made.layer.out);
    if (layer > e.layers()) {  // of jumping knowledge: J and its gradient, logits
      arrays.add(4 * size.rows[layer - 1] * in, network.jumping == "max" ? 3 : 2)
          .add(4 * size.rows[layer - 1] * out);
      continue;
    }
    const auto costs = kind.costs(made.layer, block_of(size, layer));
    for (const double numbers : costs.kept) arrays.add(4 * numbers);
    arrays.add(4 * size.rows[layer] * out, made.normalizes ? 2 : 1);
    for (std::size_t k = 0; k < costs.backward_scratch.size(); ++k)
      scratch[k] = std::max(scratch[k], costs.backward_scratch[k]);
    if (costs.transposes) {
      transposed_rows = std::max(transposed_rows, size.rows[layer - 1]);
      transposed_entries = std::max(transposed_entries, size.entries[layer]);
    }
    if (costs.keeps_positions) position_bytes = std::max(position_bytes, 8 * size.entries[layer]);
    auto& gradient = gradients[(e.layers() - layer) % 2];
    if (layer > 1) gradient = std::max(gradient, size.rows[layer - 1] * in);
  }
  for (const double gradient : gradients) arrays.add(4 * gradient);
  for (const double numbers : scratch) arrays.add(4 * numbers);
  const double first = network.types.empty() ? e.input_width() : static_cast<double>(network.hidden);
  // By their linear maps, and back.
  if (!network.types.empty()) arrays.add(4 * size.rows[0] * first, 2);
  if (network.input_dropout > 0) arrays.add(4 * size.rows[0] * first);
  return arrays.add(8 * transposed_rows).add(4 * transposed_entries, 2).add(position_bytes);
}

// Rows that are kept; on a GPU only what they are found by is memory of the host.
Arrays kept_rows(const Estimate& e, const KeptRows& kept) {
  return Arrays().add(e.job.gpu ? kept.found_by : kept.all());
}

// feature/row_choice.hpp: keys in a heap, a list; the uses of a window.
Arrays cache_rules(const Estimate& e, double cached) {
  if (cached <= 0) return {};
  const double rows = cached / (e.stored_row() + static_cast<double>(RowCache::kFoundBy));
  Arrays arrays;
  arrays.add((8 + 24 + 24) * rows);
  if (e.job.config.history.feature_rows == "belady")
    arrays.add(16 * static_cast<double>(e.work.stacked) * e.work.mean.rows[0] * e.remote());
  return arrays;
}

Arrays network(const Estimate& e) {
  const double parameters = network_size(e.network()).parameters;
  const bool exact = e.job.config.train.reproducible;
  const double state = e.job.config.train.optimizer == "adam" ? 2 : 1;
  const double averages = e.job.config.train.average_weights > 0 ? 1 : 0;
  // Weights, optimiser, gradients, averages; this rank's rows of the best weights; a flat gradient
  // per minibatch of a step, and their sum.
  Arrays arrays;
  arrays.add(4 * parameters, 2 + state + averages)
      .add(4 * parameters / static_cast<double>(e.job.ranks))
      .add(4 * parameters, exact ? e.minibatches_per_step() : 1);
  return exact ? arrays.add(8 * parameters) : arrays;
}

// ---- evaluation: train/evaluator.inl.hpp ----

TaskSize task_size(const Estimate& e) {
  return {e.job.graph, e.epoch.ranks, e.epoch.rows()};
}

Arrays evaluation(const Estimate& e) {
  const double c = e.epoch.replication, share = e.block_rows() / c;
  Arrays most, of_features, outgrown;
  const auto network = e.network();
  const auto layers = network_layers(network);
  double widest_rows = 0;
  std::array<double, kMostLayerArrays> widest = {};
  for (std::size_t layer = 1; layer <= e.layers(); ++layer) {
    const auto& chunk = e.evaluations[layer - 1];
    const double in = layer == 1 ? e.input_width() : e.width(layer - 1), out = e.width(layer);
    const double rows = std::min(static_cast<double>(chunk_rows(e.job, e.epoch.replication, layer)), share);
    const double remote = chunk.most_remote_rows / std::max<double>(1, static_cast<double>(chunk.chunks));
    // Memory that all layers use: what a wider one has outgrown stays behind.
    const auto grow = [&](double& most_bytes, double bytes) {
      if (bytes > most_bytes) outgrown.add(std::exchange(most_bytes, bytes));
    };
    grow(widest_rows, 4 * chunk.largest_input * in);
    const auto costs =
        layer_kind_of(network.kind)
            .costs(layers[layer - 1].layer, {rows, chunk.largest_input, chunk.largest_entries});
    auto working = Arrays().add(widest_rows);
    for (std::size_t k = 0; k < widest.size(); ++k) {
      if (k < costs.scratch.size()) grow(widest[k], 4 * costs.scratch[k]);
      working.add(widest[k]);
    }
    if (layer == 1 && !network.types.empty())
      working.add(4 * chunk.largest_input * static_cast<double>(network.hidden));
    const auto fetching = fetch(e, 1, chunk.largest_input, remote, layer == 1 ? e.stored_row() : 4 * in, 0);
    auto block = Arrays().add(8 * chunk.largest_input).add(8 * rows).add(4 * chunk.largest_entries, 2);
    auto picks = row_entries(rows, chunk.largest_entries, e.id(), e.epoch.shape.weighs_picks() ? 4 : 0);
    if (network.relations > 1) {
      // sample/relation_parts.cpp: beside the block; vertices of columns
      block.add(chunk.largest_entries);
      picks.add(e.id() * chunk.largest_entries).add(chunk.largest_entries);
    }
    if (!e.epoch.edges.empty()) block += edges_of(e, 1, chunk.largest_entries, 0, true);
    auto result = Arrays().add(4 * share * out);
    if (chunk.chunks > 1) result.add(4 * rows * out);
    auto gathered = Arrays();
    if (c > 1 && layer < e.layers()) gathered.add(4 * e.block_rows() * out);
    auto live = of_features + outgrown + result + working + block + larger(picks, gathered);
    if (layer > 1) live.add(4 * e.block_rows() * in);
    if (layers.size() > e.layers()) live.add(4 * share * static_cast<double>(layers.back().layer.in));
    most = larger(most, live + fetching);
    if (layer == e.layers()) {  // judged when the last chunk is done
      const auto judging = task_kind_of(e.job.config.train.task).judging_bytes(task_size(e));
      auto logits = of_features + outgrown + result + working;
      if (layer > 1) logits.add(4 * e.block_rows() * in);
      most = larger(most, logits.add(judging));
    }
    if (layer == 1) of_features = fetching;
  }
  return most;
}

// ---- what stays ----

double labels_bytes(const Estimate& e) {
  const auto& g = e.job.graph;
  if (!e.job.training) return 2 * 8.0 * static_cast<double>(g.train);  // and shuffled
  return task_kind_of(e.job.config.train.task).label_bytes(task_size(e));
}

double sampler_bytes(const Estimate& e) {
  // A weight for each column.
  return sampler_kind_of(e.job.config.sampler.kind).spreads_weights
             ? 8 * static_cast<double>(e.job.graph.columns) / e.epoch.parts()
             : 0;
}

// The phases of a job, each with what lives in it.
class Phases {
 public:
  explicit Phases(double program) : program_(program) {}

  /// From now on.
  void keep(const char* name, const Arrays& arrays) { stays_.emplace_back(name, arrays); }

  void phase(const char* name, std::vector<std::pair<const char*, Arrays>> items, double freed) {
    items.insert(items.begin(), stays_.begin(), stays_.end());
    MemoryPhase phase = {name, {{"program, libraries, MPI", program_}}};
    for (const auto& [item, arrays] : items)
      if (arrays.bytes() > 0) phase.items.push_back({item, arrays.bytes()});
    if (freed > 0) phase.items.push_back({"freed, not reused", freed});
    phases.push_back(std::move(phase));
  }

  std::vector<MemoryPhase> phases;

 private:
  double program_;
  std::vector<std::pair<const char*, Arrays>> stays_;
};

}  // namespace

std::int64_t chunk_rows(const JobSize& job, std::int64_t replication, std::size_t layer) {
  const double degree =
      static_cast<double>(job.graph.edges) / static_cast<double>(std::max<std::int64_t>(1, job.graph.nodes));
  std::int64_t widest = 0;
  for (const auto& table : input_tables(job.graph, job.config.model.embedding))
    widest = std::max(widest, table.width);
  return evaluation_chunk_rows(degree, layer == 1 ? widest : job.config.model.hidden,
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
  const auto part = largest_part(job, epoch.replication);
  const Estimate e{job, epoch, work, layers, threads, part};
  const auto resident =
      resident_memory(job.graph, job.config, job.ranks, epoch.replication, job.training, part);
  const double wide =
      job.graph.wide_indices && e.id() == 4 ? 8.0 * static_cast<double>(job.graph.edges) / epoch.parts() : 0;
  const Arrays nothing;
  Phases phases(program);
  if (resident.owners > 0) phases.keep("owners", Arrays().add(resident.owners));
  phases.keep("graph", Arrays().add(resident.topology));
  phases.phase(
      "load", {{"graph as read", Arrays().add(std::max({resident.loading, wide, 2 * sampler_bytes(e)}))}}, 0);
  phases.keep("labels, splits", Arrays().add(labels_bytes(e)).add(sampler_bytes(e)));
  if (job.training) {
    phases.keep("features", Arrays().add(resident.features));
    phases.keep("embeddings", Arrays().add(resident.embeddings));
    phases.keep("network and optimiser", network(e));
    phases.keep("history", kept_rows(e, resident.history));
    phases.keep("features of others", kept_rows(e, resident.cached));
    phases.keep("which of them to keep", cache_rules(e, resident.cached.all()));
  }
  const bool on_host = !job.gpu, network_on_host = on_host && job.training;
  const auto of_window = on_host ? window(e) : nothing, of_sampling = on_host ? sampling(e) : nothing;
  const auto of_step = network_on_host ? input_rows(e) + embedding_update(e) : nothing;
  const auto of_network = network_on_host ? activations(e) : nothing;
  const auto of_ahead = network_on_host ? steps_ahead(e) : nothing;
  // Arrays of a step grow with the largest minibatch so far, an eighth at a time, and leave what
  // they outgrew.
  constexpr double kOutgrown = 0.35;
  const auto outgrown = Arrays().add(kOutgrown * (of_step + of_network).heap);
  // Between the arrays of evaluation, which come and go by the layer.
  constexpr double kHoles = 1.08;
  auto of_evaluation = network_on_host ? evaluation(e) : nothing;
  of_evaluation.heap *= kHoles;
  // Of what sampling freed, in pieces of all sizes, the large arrays of evaluation find little
  // to live in.
  constexpr double kReused = 0.25;
  const double freed = of_window.heap + of_sampling.heap;
  const double reused = std::min(of_evaluation.heap, kReused * freed);
  const bool again = job.training && (job.config.train.epochs > 1 || epoch.bulk < work.batches);
  phases.phase("sample",
               {{"minibatches of a window", of_window},
                {"sampling", of_sampling},
                {"exchange", Arrays().add(resident.exchange)},
                {"input rows of a step", again ? of_step : nothing},
                {"steps ahead", again ? of_ahead : nothing},
                {"activations", again ? of_network : nothing},
                {"outgrown by them", again ? outgrown : nothing}},
               again ? of_evaluation.heap - reused : 0);
  if (!job.training) return {std::move(phases.phases)};
  phases.phase("step",
               {{"minibatches of a window", of_window},
                {"input rows of a step", of_step},
                {"steps ahead", of_ahead},
                {"activations", of_network},
                {"outgrown by them", outgrown}},
               of_sampling.heap);
  phases.phase("evaluate",
               {{"input rows of a step", of_step},
                {"steps ahead", of_ahead},
                {"activations", of_network},
                {"outgrown by them", outgrown},
                {"evaluation", of_evaluation}},
               freed - reused);
  return {std::move(phases.phases)};
}

}  // namespace espalier
