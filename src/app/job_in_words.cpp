#include "job_in_words.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "espalier/base/log.hpp"
#include "espalier/base/parallel_reads.hpp"
#include "espalier/base/text.hpp"
#include "espalier/partition/edge_parts.hpp"
#include "espalier/plan/memory.hpp"
#include "espalier/train/task.hpp"

namespace espalier {

std::string grid_in_words(const Job& job) {
  return fmt::format("{} as {} x {}, {} topology{}, {}, {}", counted(job.grid->ranks(), "rank"),
                     counted(job.grid->rows(), "block row"), counted(job.grid->replication(), "copy"),
                     job.config.grid.topology, shares_features(job) ? ", features shared in a node" : "",
                     job.threads.in_words("per rank"), job.device.words);
}

std::string order_in_words(const Job& job) {
  const auto& order = *job.owners.order;
  auto words = fmt::format("{}: {} by {}; largest part over the mean:", job.config.graph.order,
                           counted(order.clusters(), "cluster"), order.method);
  const auto balances = balances_of(order.weights, cut_order(order, job.grid->rows()));
  for (std::size_t kind = 0; kind < 3; ++kind)
    words += fmt::format("{} {} {:.2f}", kind > 0 ? "," : "", kBalanceNames[kind], balances[kind]);
  if (const auto& groups = job.owners.groups)
    words += fmt::format("; batches of {}", counted(groups->count, "group"));
  return words;
}

// Entries of the largest block row over the mean.
static double cut_balance(const Job& job) {
  const auto& info = job.owners.cut->info;
  const auto rows = job.grid->rows();
  return rows * largest_block_row(info.entries, rows) / static_cast<double>(info.edges());
}

std::string cut_in_words(const Job& job) {
  const auto& info = job.owners.cut->info;
  return fmt::format("{}: {} of edges by {}; entries of the largest block row over the mean {:.2f}",
                     job.config.graph.cut, counted(info.parts(), "part"), info.method, cut_balance(job));
}

std::string inputs_in_words(const GraphInfo& graph) {
  if (!graph.typed) return counted(graph.features, "feature");
  std::string words;
  for (std::size_t t = 0; t < graph.types.size(); ++t)
    if (const auto features = graph.types[t].features; features > 0)
      words += fmt::format("{} of {}",
                           words.empty() ? counted(features, "feature") : fmt::format(", {}", features),
                           graph.schema.types()[t].name);
  return words.empty() ? "no features" : words;
}

std::string types_in_words(const Job& job) {
  const auto& graph = job.graph;
  const bool names_target = graph.target >= 0 && task_kind_of(job.config.train.task).of_labels;
  if (!graph.typed) return {};
  const auto& types = graph.schema.types();
  std::string words;
  for (const auto& type : types)
    words += fmt::format("{}{} {}", words.empty() ? "" : ", ", type.name, type.size());
  return fmt::format("; {} type{} ({}){}", types.size(), types.size() == 1 ? "" : "s", words,
                     names_target ? ", target " + types[graph.target].name : "");
}

std::string split_in_words(const GraphInfo& graph, const Config& config) {
  const auto name = graph.split_name();
  return name.empty() || !task_kind_of(config.train.task).of_labels ? "" : " of split " + name;
}

void note_ignored_types(const Job& job) {
  if (job.graph.schema.plain() || sees_relations(job.config) || job.config.model.layers == 0) return;
  std::string others;
  for (const auto& kind : layer_kinds())
    if (kind.takes_relations) others += (others.empty() ? "" : ", ") + std::string(kind.name);
  log::info(
      "types   model.kind = {} ignores types: edges of several relations between two vertices are one; those "
      "that see them are {}",
      job.config.model.kind, others);
}

void say_how_disks_are_read(const Job& job) {
  const auto& config = job.config;
  if (!config.graph.features_on_disk() && job.spill.empty()) return;
  log::info("disk    rows are read {}", ParallelReads::in_words());
  if (config.run.spill.empty() && !job.spill.empty())
    log::info(
        "disk    rows of hidden layers do not fit in memory while all vertices are evaluated: they go to "
        "files in output.dir = {} (run.spill names another folder)",
        job.spill);
  if (!config.graph.features_on_disk()) return;
  double bytes = 0;
  for (const auto& table : tables_of(job))
    if (table.converted())
      bytes += static_cast<double>(table.row_bytes() * table.held.owners(job.owners.blocks).size(0));
  if (bytes > 0)
    log::info("disk    rows of features are written in {} to run.spill = {}: {} of rank 0",
              kind_asked(config.graph.feature_bits)->words, config.run.spill, bytes_in_words(bytes));
}

std::string layers_in_words(const Config& config, const std::string& widths) {
  if (config.model.layers == 0) return "no layers";
  return fmt::format("{} of {}, {}", counted(config.model.layers, "layer"), config.model.kind, widths);
}

// Where a step is no unbiased estimate of what evaluation computes: one line.
static void say_what_is_biased(const Config& config, std::span<const PlannedHook> parts) {
  const auto& sampler = sampler_kind_of(config.sampler.kind);
  const auto& model = config.model;
  const bool draws = sampler.induces || !config.sampler.relation_fanout.empty() ||
                     std::ranges::any_of(config.sampler.fanout, [](auto fanout) { return fanout >= 0; });
  const bool attends = layer_kind_of(model).takes_heads && draws,
             takes_largest = model.aggregator == "max" && draws,
             other_mode = sampler.takes_mode && config.sampler.mode != "debiased",
             unread = config.sampler.weighted && (attends || takes_largest);
  std::string words;
  const auto say = [&](bool applies, const std::string& what) {
    if (applies) words += (words.empty() ? "" : "; ") + what;
  };
  say(other_mode, fmt::format("blocks of {} in mode {}", sampler.name, config.sampler.mode));
  say(attends, fmt::format("attention of {}, over the neighbours drawn", model.kind));
  say(takes_largest, "the largest, of the neighbours drawn");
  say(unread, "draws by edge weights, which this layer does not read");
  for (const auto& part : parts) say(!part.bias.empty(), part.bias);
  if (words.empty()) return;
  const auto line = "biased estimates of what evaluation computes (docs/layers.md): " + words;
  if (other_mode || unread)
    log::warning("{}", line);
  else
    log::info("steps   {}", line);
}

static void warn_of_small_subgraphs(const Job& job) {
  const auto n = static_cast<double>(job.graph.nodes),
             others = static_cast<double>(job.config.sampler.batch_size) - 1;
  const double degree = static_cast<double>(job.graph.edges) / n, met = degree * others / (n - 1);
  if (met < 1)
    log::warning(
        "sampler.batch_size = {} of {}: a vertex meets {:.2g} of its {:.3g} neighbours on average, each "
        "counted {:.3g} times; more vertices estimate better",
        job.config.sampler.batch_size, counted(job.graph.nodes, "vertex"), met, degree,
        (n - 1) / std::max(others, 1.0));
}

static std::string no_message_in_words(const Job& job) {
  const auto& graph = job.graph;
  const auto& file = job.config.graph.file;
  if (!task_kind_of(job.config.train.task).of_labels)
    return fmt::format("{}: no edge leads from a vertex to another: the network sees no neighbours", file);
  if (graph.typed && std::ranges::none_of(graph.schema.relations(),
                                          [&](const auto& of) { return of.target == graph.target; }))
    return fmt::format(
        "{}: no relation leads to type {}, which is trained on: the network sees no neighbours of it; import "
        "the graph with the inverse of its relations",
        file, graph.schema.types()[graph.target].name);
  return fmt::format(
      "{}: no edge leads to any of the {} to train on: the network sees no neighbours of them; are edges "
      "written the wrong way round? (`espalier info` counts; an edge's message goes from its first vertex to "
      "its second)",
      file, counted(graph.train, "vertex"));
}

void warn_of_surprises(const Job& job) {
  if (job.grid->world().rank() != 0) return;
  if (job.sees_no_neighbours) log::warning("{}", no_message_in_words(job));
  const auto& config = job.config;
  const bool training = job.kind == JobKind::kTrain;
  const auto ranks = job.grid->ranks();
  const auto batches = batches_of_epoch(job.graph, config);
  const auto busy = std::min(job.batches_per_step(), batches);
  const bool follows_ranks = training && job.asked.train.batches_per_step.is_auto();
  if (busy < ranks)
    log::warning("a step has {} (train.batches_per_step = {}, {} in an epoch): {} of {} ranks keep none{}",
                 counted(busy, "batch"), job.batches_per_step(), batches, ranks - busy, ranks,
                 busy == batches
                     ? ""
                     : fmt::format("; train.batches_per_step = {} gives all of them work, and other results",
                                   std::min<std::int64_t>(ranks, batches)));
  if (follows_ranks && !config.train.reproducible)
    log::info(
        "        results change with the number of ranks; train.batches_per_step = {} keeps them (to "
        "rounding: train.reproducible = true to the last bit)",
        job.batches_per_step());
  const auto& kind = sampler_kind_of(config.sampler.kind);
  for (const auto fanout : config.sampler.fanout)
    if (kind.layer_wise && fanout > 0 &&
        4 * fanout <
            std::min(config.sampler.batch_size, task_kind_of(config.train.task).examples(job.graph))) {
      log::warning("sampler.fanout has {} for a whole layer of {}: few seeds will have a neighbour",
                   counted(fanout, "vertex"), kind.name);
      break;
    }
  if (kind.induces) warn_of_small_subgraphs(job);
  if (const int rows = job.grid->rows();
      job.owners.cut && rows > 1 && job.owners.cut->info.parts() < 4 * rows)
    log::warning(
        "graph.cut = {} has {} of edges for {} block rows, entries of the largest over the mean {:.2f}; 4 or "
        "more for each are even on any grid (`espalier partition --edges --parts {}`)",
        config.graph.cut, counted(job.owners.cut->info.parts(), "part"), rows, cut_balance(job), 4 * rows);
  const auto parts = planned_hooks(size_of(job, ranks), job.grid->replication());
  if (training) say_what_is_biased(config, parts);
  if (job.device.sharers > 1)
    log::warning("{} ranks share a GPU; start one rank per GPU, or set run.device = \"cpu\"",
                 job.device.sharers);
  if (training && config.run.overlap && !job.sampling_grid)
    log::warning("this MPI library lets one thread communicate: run.overlap hides fetching, not sampling");
  note_ignored_types(job);
  if (!config.graph.verify)
    log::info("graph   {} is not checked against its digests (graph.verify = false)", config.graph.file);
  else if (!job.verified)
    log::info(
        "graph   {} has no digest: damage and changes cannot be noticed; `espalier digest {} --write` adds "
        "one",
        config.graph.file, config.graph.file);
  for (const auto& part : parts)
    if (!part.warning.empty()) log::warning("{}", part.warning);
  const auto& task = task_kind_of(config.train.task);
  const auto splits = task.splits(job.graph);
  const char* const where = task.of_labels ? "split" : "links";
  if (training && splits[2] == 0)
    log::warning("{}: /{}/test is empty or absent: there will be no test {}", config.graph.file, where,
                 metric_of(config.train).words);
  const auto& graph = config.graph;
  if (training && (job.device.gpu ? graph.nodes_share_features() : graph.features_on_host()))
    log::warning("graph.features_on = {} has no meaning {}", config.graph.features_on,
                 job.device.gpu ? "on GPUs" : job.device.words);
  if (training && config.train.early_stop > 0 && splits[1] == 0)
    log::warning("train.early_stop = {} never stops: {} has no {} to validate on (/{}/valid)",
                 config.train.early_stop, config.graph.file, plural_of(task.example), where);
}

std::string print_report(const std::string& path, const std::string& text) {
  const bool taken = log::output_failure().empty();
  const auto page = fmt::format("\n{}:\n{}", path, text);
  if (taken) log::print(page);
  if (taken && log::output_failure().empty()) {
    // mpirun passes on the two outputs by ways of their own: the error that follows would stand in
    // the middle of the page.
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return "standard output";
  }
  std::fwrite(page.data(), 1, page.size(), stderr);
  return "standard error";
}

std::string schedules_in_words(const Job& job, const std::vector<Schedule>& schedules) {
  if (job.grid->rows() == 1 || job.config.grid.replicates()) return "no product moves data";
  return fmt::format("schedule {}", fmt::join(names_of(schedules), ", "));
}

}  // namespace espalier
