#include "espalier/plan/memory.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <numeric>
#include <string>

#include "espalier/base/error.hpp"
#include "espalier/base/index_type.hpp"
#include "espalier/feature/disk_rows.hpp"
#include "espalier/feature/edge_store.hpp"
#include "espalier/feature/input_tables.hpp"
#include "espalier/partition/edge_parts.hpp"
#include "espalier/plan/job_shapes.hpp"
#include "espalier/sample/counted_work.hpp"
#include "espalier/sample/epoch_sampler.hpp"
#include "espalier/train/task.hpp"

namespace espalier {

double topology_bytes(const GraphInfo& graph, bool with_values) {
  const double index = std::max(graph.nodes, graph.columns) < (std::int64_t{1} << 31) ? 4 : 8;
  return static_cast<double>(graph.edges) * (index + (with_values ? 4 : 0)) +
         8.0 * static_cast<double>(graph.nodes);
}

std::string bytes_in_words(double bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  int unit = 0;
  for (; bytes >= 1024 && unit < 5; ++unit) bytes /= 1024;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, units[unit]);
}

namespace {

// Features, and those of edges where the model reads them, of a rank with such shares of the
// vertices and of the edges.
double rows_of_input(const GraphInfo& graph, const Config& config, double of_vertices, double of_edges) {
  const auto tables = input_tables(graph, config);
  double features = 0;
  if (!config.graph.features_on_disk()) {
    features = of_vertices * table_bytes(tables, graph.nodes, false);
  } else {
    for (const auto& table : tables) {
      if (table.trainable) continue;
      const auto rows = static_cast<double>(table.held.count(graph.nodes));
      features += DiskRows::memory_bytes(table.converted() ? of_vertices * rows : rows,
                                         static_cast<double>(table.row_bytes()));
    }
  }
  return config.model.edge_features ? features + of_edges * edge_store_bytes(graph) : features;
}

void add_training(const JobSize& job, std::int64_t replication, double even, LargestPart part,
                  ResidentMemory& memory) {
  const auto& graph = job.graph;
  const auto& config = job.config;
  const double share = even * part.vertices;
  memory.features = rows_of_input(graph, config, share, even * part.edges);
  for (auto& planned : planned_hooks(job, replication))
    std::ranges::move(planned.kept, std::back_inserter(memory.parts));
  const auto network = network_shape(graph, config);
  const auto copies = static_cast<double>(replication);
  const double block_rows = static_cast<double>(graph.nodes) * share,
               row = 4 * static_cast<double>(config.model.hidden),
               block = job.spills() ? DiskRows::memory_bytes(block_rows, row) : block_rows * row;
  // Input and result; with copies a result is gathered of the shares.
  const double blocks = config.model.layers < 2 ? 0 : config.model.layers == 2 ? 1 : 2;
  memory.evaluation = block * (blocks + (blocks > 0 && replication > 1 ? 1 / copies : 0));
  if (config.model.jumping != "none")
    memory.evaluation +=
        4 * block_rows / copies * static_cast<double>(network_layers(network).back().layer.in);
  const auto& task = task_kind_of(config.train.task);
  const bool on_host = job.gpu && task.of_labels;
  if (task.kept_bytes != nullptr && !on_host)
    memory.evaluation += task.kept_bytes(
        {graph, config, static_cast<int>(job.ranks), static_cast<int>(job.ranks / replication)});
  memory.model = 6 * 4 * network_size(network).parameters;
}

void add_inference(const JobSize& job, std::int64_t replication, LargestPart part, ResidentMemory& memory) {
  const auto& graph = job.graph;
  const auto& config = job.config;
  const double block_rows = static_cast<double>(graph.nodes) * part.vertices *
                            static_cast<double>(replication) / static_cast<double>(job.ranks);
  const double share = block_rows / static_cast<double>(std::max<std::int64_t>(1, graph.nodes));
  memory.features = rows_of_input(graph, config, share, share);
  memory.parts = {{"embeddings", share * table_bytes(input_tables(graph, config), graph.nodes, true)}};
  const auto row_bytes = 4 * static_cast<double>(config.model.hidden);
  const double hidden =
      config.run.spill.empty() ? block_rows * row_bytes : DiskRows::memory_bytes(block_rows, row_bytes);
  if (config.graph.features_on_disk() || !config.run.spill.empty())
    memory.parts.push_back({"rows on disk", static_cast<double>(cache_memory(config.run))});
  // My share of the rows, and where others have some, too, the block that they are gathered in.
  const double kept = replication > 1 ? hidden * (1 + 1 / static_cast<double>(replication)) : hidden;
  if (config.model.layers > 1) memory.evaluation = kept;
  if (config.model.layers > 2) memory.evaluation = std::max(kept, hidden + kept - memory.features);
  memory.model = 4 * network_size(network_shape(graph, config)).parameters;
}

}  // namespace

// Of rows that are cut: the codes of their holders, marks of my own, sizes of the rows I own; and
// the largest block row's entries.
static void add_cut(const JobSize& job, int rows, ResidentMemory& memory) {
  const auto nodes = static_cast<double>(job.graph.nodes), edges = static_cast<double>(job.graph.edges);
  const double share = largest_block_row(job.cut.entries, rows) / std::max(edges, 1.0);
  const double all = topology_bytes(job.graph, matrix_has_values(job.graph, job.config)) - 8 * nodes;
  const double codes_and_marks = nodes * (rows <= 8 ? 1.25 : 2.25);
  memory.owners_on_device += codes_and_marks;
  memory.owners += codes_and_marks + 8 * nodes / rows;
  memory.topology = share * all + 8 * std::min(nodes, share * edges);
}

ResidentMemory resident_memory(const JobSize& job, std::int64_t replication) {
  const auto& graph = job.graph;
  const auto& config = job.config;
  const auto part = largest_part(job, replication);
  const double even = static_cast<double>(replication) / static_cast<double>(job.ranks);
  const double of_graph = config.grid.replicates() ? 1 : even * std::max(part.vertices, part.edges);
  ResidentMemory memory;
  if (!config.graph.order.empty())
    memory.owners = memory.owners_on_device =
        static_cast<double>(graph.nodes) * (job.ranks / replication <= 1 << 8 ? 1.25 : 2.25);
  memory.topology = topology_bytes(graph, matrix_has_values(graph, config)) * of_graph;
  if (adds_self_loops(config)) memory.loading = topology_bytes(graph, graph.weighted) * of_graph;
  if (const auto rows = static_cast<int>(job.ranks / replication); config.grid.cuts() && rows > 1)
    add_cut(job, rows, memory);
  if (config.grid.schedule == "staged-oblivious" && !config.grid.replicates())
    memory.exchange = memory.topology;
  if (job.inference)
    add_inference(job, replication, part, memory);
  else if (job.training)
    add_training(job, replication, even, part, memory);
  return memory;
}

void resolve(JobSize& job, int threads) {
  auto& config = job.config;
  const auto replication = config.grid.replication.value.value_or(automatic_replication(job));
  config.run.threads.value = threads;
  config.run.device = job.gpu ? "cuda" : "cpu";
  config.grid.replication.value = replication;
  if (job.inference) return;
  config.train.batches_per_step.value = job.training
                                            ? resolved_batches_per_step(job.graph, config, job.ranks)
                                            : config.train.batches_per_step.value.value_or(job.ranks);
  config.sampler.bulk.value = resolved_bulk(job, replication);
}

LargestPart largest_part(const JobSize& job, std::int64_t replication) {
  if (job.order.clusters() == 0) return {};
  const auto parts = static_cast<int>(job.ranks / replication);
  const auto balances = balances_of(job.order.weights, cut_order(job.order, parts));
  return {balances[0], balances[1]};
}

std::vector<PlannedHook> planned_hooks(const JobSize& job, std::int64_t replication, double rows_ahead) {
  if (!job.training || job.inference) return {};
  const auto& graph = job.graph;
  const auto& config = job.config;
  const auto ranks = job.ranks;
  const auto batches = batches_of_epoch(graph, config);
  const double nodes = static_cast<double>(std::max<std::int64_t>(1, graph.nodes)),
               mean_degree = static_cast<double>(graph.edges) / nodes + (adds_self_loops(config) ? 1 : 0),
               seeds = static_cast<double>(
                   std::min(seeds_of_batch(graph, config), seeds_of_epoch(graph, config)));
  return planned_hooks(
      {.graph = graph,
       .config = config,
       .ranks = ranks,
       .replication = replication,
       .share = static_cast<double>(replication) / static_cast<double>(ranks) *
                largest_part(job, replication).vertices,
       .batches = batches,
       .together =
           std::max<std::int64_t>(1, std::min(resolved_batches_per_step(graph, config, ranks), batches)),
       .parameters = network_size(network_shape(graph, config)).parameters,
       .rows = rough_size(sampler_kind_of(config.sampler.kind), shape_of_picks(graph, config, ranks).fanout,
                          seeds, nodes, mean_degree)
                   .rows,
       .rows_ahead = rows_ahead});
}

namespace {

// Of a GPU, but for the graph.
double rows_on_device(const JobSize& job, std::int64_t replication) {
  const auto memory = resident_memory(job, replication);
  const bool narrows = kept_kind(job.graph, job.config.graph.feature_bits).narrows;
  const double narrow = job.config.train.precision == "bf16" && narrows ? 0.5 : 1.0;
  return memory.owners_on_device + memory.evaluation + memory.model + memory.of_parts().on_device +
         (job.config.graph.features_on_host() ? 0 : narrow * memory.features);
}

double graph_on_device(const JobSize& job, std::int64_t replication) {
  return topology_fits_device(job, replication) ? resident_memory(job, replication).topology : 0;
}

// Bytes of a GPU that minibatches and activations may take.
double room_on_device(const JobSize& job, std::int64_t replication) {
  return std::max(0.0, static_cast<double>(job.device_memory) - rows_on_device(job, replication) -
                           graph_on_device(job, replication));
}

// Bytes that minibatches sampled at once may take on a rank, of the memory that they lie in.
std::int64_t sample_memory(const JobSize& job, std::int64_t replication) {
  const auto room = job.gpu ? static_cast<std::int64_t>(room_on_device(job, replication)) : job.host_memory;
  return room / (job.samples_ahead ? 8 : 4);  // one window, or two
}

}  // namespace

double bytes_on_device(const JobSize& job, std::int64_t replication) {
  return rows_on_device(job, replication) + graph_on_device(job, replication);
}

bool topology_fits_device(const JobSize& job, std::int64_t replication) {
  return resident_memory(job, replication).topology + rows_on_device(job, replication) <=
         static_cast<double>(job.device_memory) / 2;
}

double bytes_on_host(const JobSize& job, std::int64_t replication) {
  const auto memory = resident_memory(job, replication);
  if (!job.gpu) return memory.total();
  const double graph = memory.topology * (topology_fits_device(job, replication) ? 1 : 2),
               features = memory.features * (job.config.graph.features_on_host() ? 2 : 1);
  return memory.owners + std::max(graph + features + memory.of_parts().on_host + memory.exchange,
                                  memory.topology + memory.loading);
}

std::int64_t automatic_replication(const JobSize& job) {
  std::int64_t best = 1;
  for (std::int64_t c = 1; c <= job.ranks; ++c) {
    if (job.ranks % c != 0) continue;
    const bool fits_device = !job.gpu || rows_on_device(job, c) <= static_cast<double>(job.device_memory) / 2;
    if (bytes_on_host(job, c) <= static_cast<double>(job.host_memory) / 2 && fits_device) best = c;
  }
  return best;
}

std::int64_t evaluation_memory(const JobSize& job, std::int64_t replication) {
  constexpr std::int64_t kLeast = std::int64_t{64} << 20, kMost = std::int64_t{1} << 30;
  if (job.gpu)
    return std::clamp(static_cast<std::int64_t>(room_on_device(job, replication)) / 8, kLeast, kMost);
  // From disk larger ones read less twice, and less is held beside them.
  const bool on_disk = job.config.graph.features_on_disk() || job.spills();
  return job.host_memory / (on_disk ? 5 : 8);
}

std::int64_t resolved_batches_per_step(const GraphInfo& graph, const Config& config, std::int64_t ranks) {
  constexpr std::uint64_t kLeastSteps = 16, kMostTogether = 64;
  if (!config.train.reproducible || !config.train.batches_per_step.is_auto())
    return config.train.batches_per_step.value.value_or(ranks);
  const auto batches = static_cast<std::uint64_t>(batches_of_epoch(graph, config));
  return static_cast<std::int64_t>(
      std::bit_floor(std::clamp<std::uint64_t>(batches / kLeastSteps, 1, kMostTogether)));
}

std::int64_t resolved_bulk(const JobSize& job, std::int64_t replication) {
  const auto& sampler = job.config.sampler;
  const auto batches = batches_of_epoch(job.graph, job.config);
  // Where a step draws its own minibatches, windows beyond it would be drawn in vain.
  if (std::ranges::any_of(planned_hooks(job, replication), &PlannedHook::draws))
    return std::min(resolved_batches_per_step(job.graph, job.config, job.ranks), batches);
  if (sampler.bulk.value) return std::min(*sampler.bulk.value, batches);
  const auto block_rows = job.config.grid.replicates() ? 1 : job.ranks / replication;
  return automatic_bulk(shape_of_picks(job.graph, job.config, job.ranks), sampler_kind_of(sampler.kind),
                        seeds_of_batch(job.graph, job.config), batches, static_cast<int>(job.ranks),
                        static_cast<int>(block_rows), job.graph.nodes, job.graph.edges,
                        sample_memory(job, replication));
}

}  // namespace espalier
