// The most that a rank holds, phase by phase of a job, by what each room says that it holds.
#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "espalier/base/index_type.hpp"
#include "espalier/feature/edge_store.hpp"
#include "espalier/feature/fetch_model.hpp"
#include "espalier/feature/input_tables.hpp"
#include "espalier/nn/network_work.hpp"
#include "espalier/plan/job_shapes.hpp"
#include "espalier/plan/planned_job.hpp"
#include "espalier/sample/counted_work.hpp"
#include "espalier/train/evaluator.hpp"
#include "espalier/train/gradient_reduction.hpp"
#include "espalier/train/task.hpp"
#include "fitted.hpp"

namespace espalier {

namespace {

// What is asked of the rooms. Numbers are doubles, sizes bytes.
struct Estimate {
  const PlannedJob& planned;
  const JobSize& job = planned.job;
  const PlannedEpoch& epoch = planned.epoch;
  const EpochWork& work = planned.work;
  std::vector<InputTable> tables = input_tables(job.graph, job.config);
  NetworkShape network = network_shape(job.graph, job.config);

  double n() const { return static_cast<double>(job.graph.nodes); }
  double id() const { return index_bytes(job.graph.nodes); }
  bool on_disk() const { return job.config.graph.features_on_disk(); }
  double relations() const { return static_cast<double>(network.relations); }
  /// The share of a minibatch's vertices that have rows in a table.
  double share(std::size_t table) const {
    return work.mean.rows[0] > 0 ? work.mean.fetched[table] / work.mean.rows[0] : 0;
  }
  /// Columns of the rows of an input vertex, of all tables, and bytes as they are stored.
  double input_width() const {
    double width = 0;
    for (std::size_t k = 0; k < tables.size(); ++k)
      width += share(k) * static_cast<double>(tables[k].fetched_width());
    return width;
  }
  double stored_row() const {
    double bytes = 0;
    for (std::size_t k = 0; k < tables.size(); ++k)
      bytes += share(k) * static_cast<double>(tables[k].row_bytes());
    return bytes;
  }
  double minibatches_per_step() const {
    const auto per_step = std::min(epoch.batches_per_step, work.batches);
    return static_cast<double>((per_step + epoch.ranks - 1) / epoch.ranks);
  }
  double remote() const { return epoch.rows() > 1 ? crossing(epoch.rows()) : 0; }
};

ProductShape matrix_of(const Estimate& e) {
  return {.parts = e.epoch.parts(),
          .replication = e.epoch.replication,
          .rows = e.n(),
          .entries = static_cast<double>(e.job.graph.edges),
          .index_bytes = index_bytes(e.job.graph.nodes),
          .value_bytes = matrix_has_values(e.job.graph, e.job.config) ? 4 : 0,
          .cut = e.epoch.topology == Topology::kCut,
          .copies = e.work.copies,
          .join = join_of_draws(e.epoch.shape, e.relations() > 1)};
}

// ---- a step ----

Footprint window(const Estimate& e) {
  const auto minibatches = static_cast<double>(e.work.stacked) * (e.job.samples_ahead ? 2 : 1);
  const auto sum = minibatches_footprint(e.work.mean, minibatches, e.relations());
  if (!e.job.gpu || !e.job.training) return sum;
  return sum + transposes_footprint(e.network, e.work.mean.rows, e.work.mean.entries, minibatches);
}

Footprint input_rows(const Estimate& e, bool as_floats = true) {
  const double lists = e.minibatches_per_step();
  Footprint sum;
  for (std::size_t k = 0; k < e.tables.size(); ++k) {
    const double rows = e.work.largest.fetched[k];
    sum += fetch_footprint(lists, rows, lists * rows * e.remote(), e.id(),
                           static_cast<double>(e.tables[k].row_bytes()),
                           as_floats ? static_cast<double>(e.tables[k].fetched_width()) : 0);
    if (e.on_disk() && !e.tables[k].trainable)
      sum +=
          disk_read_footprint(lists * rows * (1 - e.remote()), static_cast<double>(e.tables[k].row_bytes()));
  }
  if (e.epoch.edges.empty()) return sum;
  const auto table = edge_table(e.job.graph);
  const double entries = e.work.largest.edges;
  return sum + edge_fetch_footprint(lists, entries, lists * entries * e.remote(), e.id(),
                                    static_cast<double>(table.row_bytes()),
                                    as_floats ? static_cast<double>(table.width) : 0);
}

Footprint embedding_update(const Estimate& e) {
  if (e.tables.empty() || !e.tables.back().trainable) return {};
  return row_update_footprint(e.minibatches_per_step(), e.work.largest.fetched.back(),
                              static_cast<double>(e.tables.back().row_bytes()), e.epoch.replication);
}

// What the steps hold that are under way beyond the next one.
Footprint steps_ahead(const Estimate& e) {
  const auto& run = e.job.config.run;
  const double more = run.overlap && run.prefetch_steps > 1 ? static_cast<double>(run.prefetch_steps) : 0;
  return more *
         (input_rows(e, false) + minibatches_footprint(e.work.mean, e.minibatches_per_step(), e.relations()));
}

Footprint network(const Estimate& e) {
  const double parameters = network_size(e.network).parameters;
  const bool exact = e.job.config.train.reproducible;
  const double state = e.job.config.train.optimizer == "adam" ? 2 : 1;
  // Weights, optimiser, gradients; this rank's rows of the best weights; a flat gradient per
  // minibatch of a step, and their sum; in pieces, this rank's part of those of all others.
  auto sum = Footprint()
                 .add(4 * parameters, 2 + state)
                 .add(4 * parameters / static_cast<double>(e.job.ranks))
                 .add(4 * parameters, exact ? e.minibatches_per_step() : 1);
  const auto pieces = reduction_pieces(gradient_groups(e.network), static_cast<int>(e.job.ranks)).size();
  if (pieces > 1 && !e.job.gpu) sum.add((exact ? 8 : 4) * parameters);
  return exact ? sum.add(8 * parameters) : sum;
}

Footprint activations(const Estimate& e) {
  const auto& task = task_kind_of(e.job.config.train.task);
  auto sum = activations_footprint(e.network, e.work.largest.rows, e.work.largest.entries, e.input_width());
  return task.loss_bytes == nullptr ? sum : sum.add(task.loss_bytes(e.job.graph, e.job.config));
}

// ---- evaluation ----

TaskSize task_size(const Estimate& e) {
  return {e.job.graph, e.job.config, e.epoch.ranks, e.epoch.rows()};
}

Footprint evaluation(const Estimate& e) {
  const auto& task = task_kind_of(e.job.config.train.task);
  const auto bytes_of = [&](double (*bytes)(const TaskSize& size)) {
    return bytes == nullptr ? 0 : bytes(task_size(e));
  };
  const auto edges = edge_table(e.job.graph);
  const EvaluatedRows rows = {
      .block_rows = e.n() / e.epoch.rows() * largest_part(e.job, e.epoch.replication).vertices,
      .replication = e.epoch.replication,
      .input_width = e.input_width(),
      .input_row_bytes = e.stored_row(),
      .id_bytes = e.id(),
      .pick_value_bytes = e.epoch.shape.weighs_picks() ? 4.0 : 0.0,
      .reads_disk = e.on_disk(),
      .spills = e.job.spills(),
      .kept = bytes_of(task.kept_bytes) * largest_part(e.job, e.epoch.replication).vertices,
      .evaluating = bytes_of(task.evaluation_bytes),
      .reads_edges = !e.epoch.edges.empty(),
      .edge_row_bytes = static_cast<double>(edges.row_bytes()),
      .edge_width = static_cast<double>(edges.width)};
  return evaluation_footprint(e.network, rows, e.planned.evaluations);
}

// ---- what stays ----

double labels_bytes(const Estimate& e) {
  const auto& g = e.job.graph;
  if (!e.job.targets) return 2 * 8.0 * static_cast<double>(g.train);  // and shuffled
  return task_kind_of(e.job.config.train.task).label_bytes(task_size(e));
}

using Items = std::vector<std::pair<std::string, Footprint>>;

Items operator+(Items a, const Items& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// The phases of a job, each with what lives in it.
class Phases {
 public:
  explicit Phases(double program) : program_(program) {}

  /// From now on.
  void keep(const std::string& name, const Footprint& footprint) { stays_.emplace_back(name, footprint); }

  void phase(const char* name, const Items& items, double freed) {
    MemoryPhase phase = {name, {{"program, libraries, MPI", program_}}};
    for (const auto& [item, footprint] : stays_ + items)
      if (footprint.bytes() > 0) phase.items.push_back({item, footprint.bytes()});
    if (freed > 0) phase.items.push_back({"freed, not reused", freed});
    phases.push_back(std::move(phase));
  }

  std::vector<MemoryPhase> phases;

 private:
  double program_;
  Items stays_;
};

}  // namespace

ChunkLimit evaluation_chunks(const JobSize& job, std::int64_t replication, std::size_t layer) {
  const auto network = network_shape(job.graph, job.config);
  auto widest = widened_width(network);
  bool features = false;
  for (const auto& table : input_tables(job.graph, job.config)) {
    widest = std::max(widest, table.fetched_width());
    features = features || !table.trainable;
  }
  const bool on_disk = layer == 1 ? features && job.config.graph.features_on_disk() : job.spills();
  return chunk_limit(layer == 1 ? widest : job.config.model.hidden,
                     network_layers(network)[layer - 1].layer.out, evaluation_memory(job, replication),
                     on_disk && !job.gpu);
}

double MemoryPhase::total() const {
  return std::accumulate(items.begin(), items.end(), 0.0,
                         [](double sum, const MemoryItem& item) { return sum + item.bytes; });
}

const MemoryPhase& PeakMemory::fullest() const {
  return *std::ranges::max_element(phases, {}, [](const MemoryPhase& phase) { return phase.total(); });
}

double minibatches_on_device(const PlannedJob& planned) {
  const Estimate e{planned};
  const auto sampled = window(e), sampling = sampling_footprint(e.epoch, e.work, matrix_of(e), 0);
  if (!e.job.training) return (sampled + sampling).bytes();
  return (sampled + larger(sampling, input_rows(e) + embedding_update(e) + activations(e) + steps_ahead(e)))
      .bytes();
}

PeakMemory peak_memory(const PlannedJob& planned) {
  const Estimate e{planned};
  const auto& [job, epoch, work] = std::tie(e.job, e.epoch, e.work);
  const auto resident = resident_memory(job, epoch.replication);
  const double of_sampler = sampler_bytes(epoch, static_cast<double>(job.graph.columns));
  const double wide =
      job.graph.wide_indices && e.id() == 4 ? 8.0 * static_cast<double>(job.graph.edges) / epoch.parts() : 0;
  const Footprint nothing;
  Phases phases(planned.program);
  if (resident.owners > 0) phases.keep("owners", Footprint().add(resident.owners));
  phases.keep("graph", Footprint().add(resident.topology));
  phases.phase("load",
               {{"graph as read", Footprint().add(std::max({resident.loading, wide, 2 * of_sampler}))}}, 0);
  phases.keep("labels, splits", Footprint().add(labels_bytes(e)).add(of_sampler));
  if (job.training) {
    phases.keep("features", Footprint().add(resident.features));
    phases.keep("network and optimiser", network(e));
    const double rows_ahead = static_cast<double>(work.stacked) * work.mean.rows[0];
    for (const auto& part_of_step : planned_hooks(job, epoch.replication, rows_ahead))
      for (const auto& kept : part_of_step.kept)
        phases.keep(kept.name, Footprint().add(job.gpu ? kept.on_host : kept.all()));
  }
  const bool on_host = !job.gpu, network_on_host = on_host && job.training;
  const double of_thread =
      sampler_bytes_of_thread(epoch, e.relations() > 1 ? 0 : static_cast<double>(job.graph.columns));
  const auto of_window = on_host ? window(e) : nothing,
             of_sampling = on_host ? sampling_footprint(epoch, work, matrix_of(e), planned.threads)
                                         .add(of_thread, planned.threads)
                                   : nothing;
  const auto of_step = network_on_host ? input_rows(e) + embedding_update(e) : nothing;
  const auto of_network = network_on_host ? activations(e) : nothing;
  const auto of_ahead = network_on_host ? steps_ahead(e) : nothing;
  const auto outgrown = Footprint().add(kOutgrown * (of_step + of_network).heap);
  const auto of_evaluation = network_on_host ? evaluation(e) : nothing;
  // Evaluation and sampling take turns in the same pages of the heap.
  const double freed = of_window.heap + of_sampling.heap;
  const double reused = std::min(of_evaluation.heap, freed);
  const bool again = job.training && (job.config.train.epochs > 1 || epoch.bulk < work.batches);
  const Items windows = {{"minibatches of a window", of_window}}, steps = {{"input rows of a step", of_step},
                                                                           {"steps ahead", of_ahead},
                                                                           {"activations", of_network},
                                                                           {"outgrown by them", outgrown}};
  const Items sampling = {{"sampling", of_sampling}, {"exchange", Footprint().add(resident.exchange)}};
  phases.phase("sample", windows + sampling + (again ? steps : Items()),
               again ? of_evaluation.heap - reused : 0);
  if (!job.training) return {std::move(phases.phases)};
  phases.phase("step", windows + steps, of_sampling.heap);
  phases.phase("evaluate", steps + Items{{"evaluation", of_evaluation}}, freed - reused);
  return {std::move(phases.phases)};
}

}  // namespace espalier
