#include "job.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "changed_keys.hpp"
#include "espalier/base/clock.hpp"
#include "espalier/base/counted.hpp"
#include "espalier/base/input_text.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/parallel_reads.hpp"
#include "espalier/comm/agree.hpp"
#include "espalier/comm/session.hpp"
#include "espalier/feature/spilled_rows.hpp"
#include "espalier/partition/edge_parts.hpp"
#include "espalier/plan/memory.hpp"
#include "espalier/sample/epoch_sampler.hpp"
#include "espalier/train/task.hpp"

namespace espalier {

Config load_job_config(const Communicator& world, const JobArguments& arguments) {
  note_activity("reading the config");
  std::string text;
  agree(world, [&] {
    if (world.rank() == 0) text = read_input_text(arguments.config, "config file");
  });
  text = world.broadcast_text(text, 0, "setup");
  auto config = parse_config(text, arguments.config, arguments.overrides);
  check_job(Moment::kConfig, {.world = world, .config = config, .source = arguments.config});
  if (config.graph.file.empty() && !arguments.dry_run)
    usage_error(
        "{}: {}graph.file is missing; name a file that `espalier import` or `espalier generate` wrote, here "
        "or as graph.file=PATH on the command line",
        arguments.config, text.find_first_not_of(" \t\r\n") == std::string::npos ? "is empty, and " : "");
  return config;
}

void check_order(const VertexPartitionInfo& order, const GraphFile& file, const std::string& path) {
  constexpr const char* kAgain = "make one of this graph with `espalier partition`";
  if (order.nodes != file.info().nodes)
    input_error("{}: the order is of a graph with {} vertices, and {} has {}; {}", path, order.nodes,
                file.path(), file.info().nodes, kAgain);
  const auto pattern = pattern_digest(file.content());
  if (order.pattern && pattern && *order.pattern != *pattern)
    input_error("{}: the order is of a graph with other edges than {} has; {}", path, file.path(), kAgain);
}

void check_cut(const EdgePartsInfo& cut, const GraphFile& file, const std::string& path) {
  constexpr const char* kAgain = "make them of this graph with `espalier partition --edges`";
  if (cut.edges() != file.info().edges)
    input_error("{}: the parts are of a graph with {} edges, and {} has {}; {}", path, cut.edges(),
                file.path(), file.info().edges, kAgain);
  const auto pattern = pattern_digest(file.content());
  if (cut.pattern && pattern && *cut.pattern != *pattern)
    input_error("{}: the parts are of a graph with other edges than {} has; {}", path, file.path(), kAgain);
}

std::optional<EdgeCut> read_job_cut(const Communicator& world, const Config& config, const GraphFile& file) {
  if (config.graph.cut.empty()) return {};
  note_activity("reading the parts of edges");
  const EdgeCut cut = {config.graph.cut, read_edge_parts_info(world, config.graph.cut)};
  check_cut(cut.info, file, config.graph.cut);
  return cut;
}

GraphView view_of(const Config& config) {
  GraphView view(config.graph.verify ? Verify::kYes : Verify::kNo);
  view.target = config.graph.target;
  view.split = config.graph.split;
  view.apart = sees_relations(config);
  return view;
}

// Collective. The groups of local batches: stretches of the order.
static std::shared_ptr<const BatchGroups> groups_of_job(const Communicator& world, const Order& order,
                                                        const GraphFile& file, const Config& config) {
  const auto& task = task_kind_of(config.train.task);
  const auto count = static_cast<std::int32_t>(config.sampler.groups);
  return std::make_shared<const BatchGroups>(
      task.places == nullptr ? group_batches(order, file.read_split(Split::kTrain), count)
                             : group_spread_batches(world, order, task.places(world, file), count));
}

std::optional<Order> read_job_order(const Communicator& world, const Config& config, const GraphFile& file) {
  if (config.graph.order.empty()) return {};
  note_activity("reading the order");
  auto order = read_order(world, config.graph.order);
  check_order(order.info, file, config.graph.order);
  return order;
}

void own_vertices(const Communicator& world, VertexOwners& owners, const std::optional<Order>& order,
                  const GraphFile& file, const Config& config, int rows) {
  owners.blocks = order ? own_by(*order, rows) : own_types_evenly(file.info().schema, rows);
  if (config.sampler.groups > 0) owners.groups = groups_of_job(world, *order, file, config);
}

bool sees_relations(const Config& config) {
  return layer_kind_of(config.model).takes_relations;
}

std::vector<InputTable> tables_of(const Job& job) {
  return input_tables(job.graph, job.config);
}

InputShape input_of(const Job& job) {
  return input_shape(job.graph, sees_relations(job.config), tables_of(job));
}

static bool reads_targets(const Job& job) {
  if (job.kind == JobKind::kWrite)
    return task_kind_of(job.config.train.task).of_labels && job.graph.has_labels;
  return job.kind == JobKind::kTrain ||
         (job.kind == JobKind::kInfer && (job.command.evaluates || job.command.answers));
}

JobSize size_of(const Job& job, std::int64_t ranks) {
  return {.graph = job.graph,
          .config = job.config,
          .ranks = ranks,
          .training = job.kind == JobKind::kTrain,
          .inference = job.kind == JobKind::kInfer,
          .targets = reads_targets(job),
          .lists = job.command.lists,
          .host_memory = job.memory_limit,
          .gpu = job.device.gpu != nullptr,
          .device_memory = job.device.memory,
          .samples_ahead = job.samples_ahead,
          .order = job.owners.order.value_or(VertexPartitionInfo()),
          .cut = job.owners.cut ? job.owners.cut->info : EdgePartsInfo(),
          .may_spill = job.kind == JobKind::kTrain && job.device.gpu == nullptr,
          .spills_unasked = job.config.run.spill.empty() && !job.spill.empty()};
}

bool topology_on_device(const Job& job) {
  return topology_fits_device(size_of(job, job.grid->ranks()), job.grid->replication());
}

static bool shares_features(const Job& job) {
  return job.config.graph.nodes_share_features() && !job.device.gpu;
}

InputFeatures read_job_features(const Job& job, const Standardization& standard) {
  note_activity("reading the features");
  auto features =
      read_features(*job.grid, *job.file, job.owners.blocks, tables_of(job), job.config.graph.feature_norm,
                    standard, job.config.graph.features_on_disk(), job.config.run.spill);
  if (!shares_features(job)) return features;
  bool shared = true;
  for (auto& store : features.stores) shared = store.share(ranks_of_node(job.grid->world())) && shared;
  if (!shared && job.grid->world().rank() == 0)
    log::warning(
        "graph.features_on = \"node\": ranks of a node cannot read each other's memory (containers of their "
        "own?); rows are sent as without");
  return features;
}

std::shared_ptr<const EdgeStore> read_job_edges(const Job& job) {
  if (!job.config.model.edge_features) return nullptr;
  note_activity("reading the features of edges");
  return std::make_shared<const EdgeStore>(read_edges(*job.grid, *job.file, job.owners.blocks));
}

PassMemory pass_memory(const Job& job) {
  const auto size = size_of(job, job.grid->ranks());
  const bool held =
      std::ranges::any_of(planned_hooks(size, job.grid->replication()), &PlannedHook::holds_cache);
  return {evaluation_memory(size, job.grid->replication()), job.spill,
          held ? 0 : cache_memory(job.config.run)};
}

// Collective. The job as it will run; hidden rows go to output.dir only where files can be there.
static PlannedJob fit_job(const Communicator& world, const Job& job, JobSize asked,
                          const MemoryOffer& offer) {
  const JobEstimates estimates(world, *job.file, asked, job.cpu.threads);
  const auto fitted = estimates.fit(asked, offer);
  if (!fitted.job.spills_unasked) return fitted;
  const auto& folder = job.config.output.dir;
  try {
    agree(world, [&] { SpilledRows(folder, 0, 1); });
  } catch (const UserError&) {
    if (world.rank() == 0)
      log::warning("rows of hidden layers cannot be written to output.dir = {} by all ranks", folder);
    asked.may_spill = false;
    return estimates.fit(asked, offer);
  }
  return fitted;
}

Job open_job(const Communicator& world, const Config& config, JobKind kind, const OfWeights& weights,
             const OfCommand& command, const InMemory* memory) {
  Job job;
  set_memory_advice(
      "use more ranks, a smaller grid.replication, sampler.bulk, sampler.batch_size or model.hidden");
  job.asked = job.config = config;
  job.kind = kind;
  job.command = command;
  const auto node = place_on_node(world);
  job.threads = choose_threads(config.run.threads, node.cores / node.sharers, world.rank() == 0);
  job.cpu.threads = job.threads.count;
  job.memory_limit = config.run.memory_limit == "auto"
                         ? node_memory() / node.ranks
                         : parse_bytes(config.run.memory_limit, "run.memory_limit");
  job.memory_limit = world.all_reduce(job.memory_limit, Reduction::kMin, "setup");
  job.device = choose_device(world, node, config);
  job.samples_ahead = kind == JobKind::kTrain && config.run.overlap && threads_may_communicate();

  note_activity("opening the graph file");
  auto view = view_of(config);
  view.target_by = weights.target_by;
  const bool evaluates = kind != JobKind::kInfer || command.evaluates;
  if (!evaluates) view.split.clear();
  job.file = memory ? std::make_unique<GraphFile>(world, config.graph.file, memory->graph, view)
                    : std::make_unique<GraphFile>(world, config.graph.file, view);
  job.graph = job.file->info();
  if (weights.classes) job.graph.classes = *weights.classes;
  if (!evaluates && !config.graph.split.empty()) {  // it is named where it is there
    const auto found = std::ranges::find(job.graph.splits, config.graph.split, &SplitInfo::name);
    job.graph.split =
        found == job.graph.splits.end() ? -1 : static_cast<int>(found - job.graph.splits.begin());
  }
  name_target(job.graph, job.config);
  if (task_kind_of(config.train.task).of_labels)
    job.config.graph.split = job.graph.split_name();
  else
    job.graph.split = -1;  // links are of no split of vertices
  JobFacts facts = {.world = world,
                    .config = config,
                    .kind = kind,
                    .evaluates = command.evaluates,
                    .ranks = world.size(),
                    .file = job.file.get(),
                    .graph = &job.graph};
  check_job(Moment::kGraph, facts);
  const auto order = memory && memory->order ? *memory->order : read_job_order(world, config, *job.file);
  if (order) job.owners.order = order->info;
  job.owners.cut = read_job_cut(world, config, *job.file);
  const auto asked = size_of(job, world.size());
  auto size = asked;
  resolve(size, job.cpu.threads);
  facts.order = order ? &order->info : nullptr;
  facts.size = &size;
  facts.device = job.device.words;
  check_job(Moment::kGrid, facts);
  facts.memory = offered_memory(world, config, node.ranks);
  const auto fitted = fit_job(world, job, asked, facts.memory);
  facts.estimated = &fitted;
  facts.size = &fitted.job;
  check_job(Moment::kMemory, facts);
  job.config = fitted.job.config;
  job.memory_limit = fitted.job.host_memory;
  const auto replication = static_cast<int>(*job.config.grid.replication.value);
  // Says now what would be wrong later.
  if (!config.run.spill.empty() && (kind == JobKind::kTrain || kind == JobKind::kInfer))
    agree(world, [&] { SpilledRows(config.run.spill, 0, 1); });
  job.spill = fitted.job.spills_unasked ? config.output.dir : config.run.spill;

  job.grid = std::make_unique<Grid>(world, replication);
  auto owned_by = config;
  if (kind == JobKind::kInfer) owned_by.sampler.groups = 0;  // nothing is drawn in batches
  own_vertices(world, job.owners, order, *job.file, owned_by, job.grid->rows());
  if (job.samples_ahead) job.sampling_grid = std::make_unique<Grid>(world.duplicate(), replication);
  return job;
}

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
    if (table.in_fewer_bits())
      bytes += static_cast<double>(table.row_bytes() * table.held.owners(job.owners.blocks).size(0));
  if (bytes > 0)
    log::info("disk    rows of features are written in {} bits to run.spill = {}: {} of rank 0",
              config.graph.feature_bits, config.run.spill, bytes_in_words(bytes));
}

std::string layers_in_words(const Config& config, const std::string& widths) {
  if (config.model.layers == 0) return "no layers";
  return fmt::format("{} of {}, {}", counted(config.model.layers, "layer"), config.model.kind, widths);
}

std::string sampler_in_words(const Config& config) {
  if (config.model.layers == 0) return "no neighbours";
  const bool has_mode = sampler_kind_of(config.sampler.kind).takes_mode;
  return fmt::format("{}{} fanout {}", config.sampler.kind, has_mode ? " (" + config.sampler.mode + ")" : "",
                     fmt::join(config.sampler.fanout, ","));
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

void warn_of_surprises(const Job& job) {
  if (job.grid->world().rank() != 0) return;
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

std::string no_message_in_words(const Job& job) {
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

std::vector<std::string> names_of(const std::vector<Schedule>& schedules) {
  std::vector<std::string> names;
  for (const auto schedule : schedules) names.emplace_back(name_of(schedule));
  return names;
}

std::string schedules_in_words(const Job& job, const std::vector<Schedule>& schedules) {
  if (job.grid->rows() == 1 || job.config.grid.replicates()) return "no product moves data";
  return fmt::format("schedule {}", fmt::join(names_of(schedules), ", "));
}

RunReport start_report(const Job& job, const char* command, const std::vector<Schedule>& schedules) {
  RunReport report;
  report.command = command;
  report.config_json = to_json(job.config);
  report.ranks = job.grid->ranks();
  report.replication = job.grid->replication();
  report.threads = job.cpu.threads;
  report.device = job.device.name();
  report.graph = job.graph;
  report.verified = job.verified;
  if (!job.config.grid.replicates() && job.grid->rows() > 1) report.schedules = names_of(schedules);
  return report;
}

void measure_peak_memory(const Job& job, RunReport& report) {
  measure_peak_memory(job.grid->world(), report);
#ifdef ESPALIER_WITH_CUDA
  if (!job.device.gpu) return;
  report.peak_device_memory_max = report.peak_device_memory_sum = job.device.gpu->peak_memory();
  const auto& world = job.grid->world();
  report.peak_device_memory_max = world.all_reduce(report.peak_device_memory_max, Reduction::kMax, "report");
  report.peak_device_memory_sum = world.all_reduce(report.peak_device_memory_sum, Reduction::kSum, "report");
#endif
}

}  // namespace espalier
