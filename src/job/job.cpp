#include "espalier/job/job.hpp"

#include <fmt/ranges.h>
#include <algorithm>

#include "espalier/base/clock.hpp"
#include "espalier/base/parallel_reads.hpp"
#include "espalier/base/text.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/comm/session.hpp"
#include "espalier/feature/spilled_rows.hpp"
#include "espalier/job/bindings.hpp"
#include "espalier/job/changed_keys.hpp"
#include "espalier/job/job_check.hpp"
#include "espalier/partition/edge_parts.hpp"
#include "espalier/plan/memory.hpp"
#include "espalier/sample/epoch_sampler.hpp"
#include "espalier/train/task.hpp"

namespace espalier {

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

bool shares_features(const Job& job) {
  return job.config.graph.nodes_share_features() && !job.device.gpu;
}

InputFeatures read_job_features(const Job& job, const Standardization& standard) {
  note_activity("reading the features");
  const InterleavedPages interleaved(job.cpu.threads);
  auto features =
      read_features(*job.grid, *job.file, job.owners.blocks, tables_of(job), job.config.graph.feature_norm,
                    standard, job.config.graph.features_on_disk(), job.config.run.spill);
  if (!shares_features(job)) return features;
  bool shared = true;
  for (auto& store : features.stores) shared = store.share(ranks_of_node(job.grid->world())) && shared;
  if (!shared)
    job.tell(
        log::Level::kWarning,
        "graph.features_on = \"node\": ranks of a node cannot read each other's memory (containers of their "
        "own?); rows are sent as without");
  return features;
}

std::shared_ptr<const EdgeStore> read_job_edges(const Job& job) {
  if (!job.config.model.edge_features) return nullptr;
  note_activity("reading the features of edges");
  const InterleavedPages interleaved(job.cpu.threads);
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
static PlannedJob fit_job(const Communicator& world, const Job& job, JobSize asked, const MemoryOffer& offer,
                          const log::Listener& listener) {
  const JobEstimates estimates(world, *job.file, asked, job.cpu.threads);
  const auto fitted = estimates.fit(asked, offer);
  if (!fitted.job.spills_unasked) return fitted;
  const auto& folder = job.config.output.dir;
  try {
    agree(world, [&] { SpilledRows(folder, 0, 1); });
  } catch (const UserError&) {
    log::tell(listener, log::Level::kWarning,
              "rows of hidden layers cannot be written to output.dir = {} by all ranks", folder);
    asked.may_spill = false;
    return estimates.fit(asked, offer);
  }
  return fitted;
}

// As the file and the command line say, and where they do not, an earlier run.
static Config with_earlier(Config config, const EarlierRun& earlier) {
  if (config.graph.target.empty()) config.graph.target = earlier.target;
  if (config.train.batches_per_step.is_auto()) config.train.batches_per_step = earlier.batches_per_step;
  return config;
}

Job open_job(const Communicator& world, const Config& asked, JobKind kind, const EarlierRun& earlier,
             const OfCommand& command, const InMemory* memory) {
  Job job;
  set_memory_advice(
      "use more ranks, a smaller grid.replication, sampler.bulk, sampler.batch_size or model.hidden");
  const auto config = with_earlier(asked, earlier);
  job.asked = asked;
  job.config = config;
  job.kind = kind;
  job.command = command;
  const auto node = place_on_node(world);
  const auto listener = world.rank() == 0 ? command.listener : log::Listener();
  job.threads = choose_threads(config.run.threads, node.cores / node.sharers, listener);
  job.cpu.threads = job.threads.count;
  warn_of_bindings(world, job.threads.count, listener);
  job.memory_limit = config.run.memory_limit == "auto"
                         ? node_memory() / node.ranks
                         : parse_bytes(config.run.memory_limit, "run.memory_limit");
  job.memory_limit = world.all_reduce(job.memory_limit, Reduction::kMin, "setup");
  job.device = choose_device(world, node, config);
  if (!job.device.gpu) job.cpu.precision = precision_of(config.train.precision);
  job.samples_ahead = kind == JobKind::kTrain && config.run.overlap && threads_may_communicate();

  note_activity("opening the graph file");
  auto view = view_of(config);
  if (asked.graph.target.empty()) view.target_by = earlier.path;
  const bool evaluates = kind != JobKind::kInfer || command.evaluates;
  if (!evaluates) view.split.clear();
  job.file = memory ? std::make_unique<GraphFile>(world, config.graph.file, memory->graph, view)
                    : std::make_unique<GraphFile>(world, config.graph.file, view);
  job.graph = job.file->info();
  if (earlier.classes) job.graph.classes = *earlier.classes;
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
                    .graph = &job.graph,
                    .listener = listener};
  check_job(Moment::kGraph, facts);
  const auto order = memory && memory->order ? *memory->order : read_job_order(world, config, *job.file);
  if (order) job.owners.order = order->info;
  job.owners.cut = read_job_cut(world, config, *job.file);
  const auto asked_size = size_of(job, world.size());
  auto size = asked_size;
  resolve(size, job.cpu.threads);
  facts.order = order ? &order->info : nullptr;
  facts.size = &size;
  facts.device = job.device.words;
  check_job(Moment::kGrid, facts);
  facts.memory = offered_memory(world, config, node.ranks);
  const auto fitted = fit_job(world, job, asked_size, facts.memory, listener);
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

std::string sampler_in_words(const Config& config) {
  if (config.model.layers == 0) return "no neighbours";
  const bool has_mode = sampler_kind_of(config.sampler.kind).takes_mode;
  return fmt::format("{}{} fanout {}", config.sampler.kind, has_mode ? " (" + config.sampler.mode + ")" : "",
                     fmt::join(config.sampler.fanout, ","));
}

std::vector<std::string> names_of(const std::vector<Schedule>& schedules) {
  std::vector<std::string> names;
  for (const auto schedule : schedules) names.emplace_back(name_of(schedule));
  return names;
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

Config load_job_config(const Communicator& world, const std::string& path,
                       const std::vector<std::string>& overrides, bool needs_graph) {
  note_activity("reading the config");
  std::string text;
  agree(world, [&] {
    if (world.rank() == 0) text = read_input_text(path, "config file");
  });
  text = world.broadcast_text(text, 0, "setup");
  auto config = parse_config(text, path, overrides);
  check_job(Moment::kConfig, {.world = world, .config = config, .source = path});
  if (config.graph.file.empty() && needs_graph)
    usage_error(
        "{}: {}graph.file is missing; name a file that `espalier import` or `espalier generate` wrote, here "
        "or as graph.file=PATH on the command line",
        path, text.find_first_not_of(" \t\r\n") == std::string::npos ? "is empty, and " : "");
  return config;
}

}  // namespace espalier
