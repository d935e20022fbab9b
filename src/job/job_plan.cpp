#include "espalier/job/job_plan.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "espalier/base/watchdog.hpp"
#include "espalier/comm/session.hpp"
#include "espalier/feature/cache_policy.hpp"
#include "espalier/feature/disk_read_model.hpp"
#include "espalier/job/job.hpp"
#include "espalier/sample/epoch_plan.hpp"
#include "espalier/train/task.hpp"

namespace espalier {

namespace {

// What a rank has, and by whose word.
MemoryOffer memory_of_rank(const Communicator& world, const PlanOptions& options, const Config& config,
                           const std::optional<Machine>& machine) {
  if (!options.memory_per_rank.empty())
    return {parse_bytes(options.memory_per_rank, "--memory-per-rank"), "--memory-per-rank", true};
  if (config.run.memory_limit != "auto" || !machine) return offered_memory(world, config, options.ranks);
  const auto ranks = std::min(options.ranks, machine->ranks_per_node);
  return {parse_bytes(machine->memory, "node.memory") / ranks, "a node's, by the machine file", true};
}

bool computes_on_gpu(const Config& config, const std::optional<Machine>& machine) {
  if (config.run.device == "cpu") return false;
  if (machine && machine->device == "cuda") return true;
  if (config.run.device == "cuda")
    usage_error(
        "run.device = cuda: `plan` knows a GPU by its machine file; give --machine with node.device = "
        "\"cuda\"");
  return false;
}

// The job as `sample` and `train` will be asked for it (open_job).
Plan asked_plan(const Communicator& world, const PlanOptions& options, const Config& config,
                const GraphInfo& graph, const std::optional<Order>& order, const std::optional<EdgeCut>& cut,
                const log::Listener& listener) {
  Plan plan;
  if (!options.machine.empty()) plan.machine = read_machine(options.machine);
  auto& job = plan.job;
  job.graph = graph;
  job.config = config;
  job.ranks = options.ranks;
  if (order) job.order = order->info;
  if (cut) job.cut = cut->info;
  job.training = !options.sampling;
  plan.offer = memory_of_rank(world, options, config, plan.machine);
  job.host_memory = plan.offer.binding ? plan.offer.bytes : node_memory() / options.ranks;
  job.gpu = computes_on_gpu(config, plan.machine);
  if (job.gpu) job.device_memory = parse_bytes(plan.machine->device_memory, "node.device_memory");
  job.samples_ahead = job.training && config.run.overlap;
  const auto cores = static_cast<std::int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  plan.threads_chosen = plan.machine && config.run.threads.is_auto()
                            ? Threads{static_cast<int>(plan.machine->threads), "the machine file"}
                            : choose_threads(config.run.threads, cores / options.ranks, listener);
  plan.threads = plan.threads_chosen.count;
  job.may_spill = job.training && !job.gpu;
  return plan;
}

// ---- counting, or estimating ----

// What counting holds: the matrix, marks for each layer, the matrix as read beside it.
double bytes_to_count(const Plan& plan) {
  auto job = plan.job;
  job.config.grid.topology = "replicated";
  job.ranks = 1;
  job.training = false;
  job.order = {};
  return resident_memory(job, 1).total() +
         static_cast<double>(job.graph.nodes) * (8.0 * static_cast<double>(job.config.model.layers) + 12);
}

template <class Index>
DiskReadModel::Job disk_reads(const Plan& plan, const DistCsr<Index>& a) {
  const auto& config = plan.job.config;
  const auto rule = cache_rule_of(config.run.cache_policy);
  const auto memory = cache_memory(config.run);
  return {.tables = input_tables(plan.job.graph, config),
          .blocks = plan.epoch.blocks(a.rows()),
          .replication = plan.epoch.replication,
          .rule = rule,
          .memory = memory,
          .by_degree = memory > 0 && rule == CacheRule::kDegree ? rows_by_degree(a, a.rows())
                                                                : std::vector<std::int64_t>(),
          .batches = batches_of_epoch(plan.job.graph, config),
          .batches_per_step = plan.epoch.batches_per_step,
          .bulk = plan.epoch.bulk};
}

template <class Index>
void count(Plan& plan, const Communicator& world, const GraphFile& file, std::int64_t draw) {
  const Grid grid(world, 1);
  const auto a = read_model_matrix<Index>(grid, file, block_partition(file.info().nodes, 1), plan.job.config);
  const Cpu cpu{choose_threads({}, std::thread::hardware_concurrency()).count};
  note_activity("counting minibatches");
  const auto examples = task_kind_of(plan.job.config.train.task)
                            .read_examples(world, file, plan.job.config, plan.epoch.groups.get());
  std::optional<DiskReadModel> reads;
  InputVisit visit;
  const auto parts = planned_hooks(plan.job, plan.epoch.replication);
  if (plan.job.training && plan.job.config.graph.features_on_disk() &&
      std::ranges::none_of(parts, &PlannedHook::holds_cache)) {
    reads.emplace(disk_reads(plan, a));
    visit = [&](auto batch, int rank, auto vertices) { reads->add(batch, rank, vertices); };
  }
  plan.work = count_epoch(cpu, a, plan.epoch, *examples, draw, visit);
  if (reads && plan.work.drawn == plan.work.batches) plan.disk = reads->counts();
  const auto blocks = plan.epoch.blocks(a.rows());
  for (const auto split : {Split::kTrain, Split::kValid, Split::kTest})
    plan.evaluated[static_cast<std::size_t>(split)] =
        count_evaluated(file.read_split(split), blocks, plan.epoch.replication);
  // A relation that is left out is so in all layers.
  const auto& fanouts = plan.epoch.shape.relation_fanout;
  const std::span<const std::int64_t> left_out =
      fanouts.empty() ? std::span<const std::int64_t>() : std::span(fanouts[0]);
  ChunkLimit before;
  for (std::size_t layer = 1; plan.job.training && layer <= plan.epoch.shape.fanout.size(); ++layer) {
    note_activity("counting an evaluation");
    const auto limit = evaluation_chunks(plan.job, plan.epoch.replication, layer);
    const bool one_table = plan.epoch.tables.size() == 1 && plan.epoch.tables[0].all(),
               as_before = layer > 1 && (layer > 2 || one_table) && limit == std::exchange(before, limit);
    before = limit;
    plan.evaluations.push_back(
        as_before ? plan.evaluations.back()
                  : count_evaluation(a.local, blocks, plan.epoch.replication, limit, a.columns.view(),
                                     layer == 1 ? plan.epoch.tables : std::vector{HeldTypes()}, left_out));
  }
}

// From degrees alone, as the verdict was.
void take_estimates(Plan& plan, const PlannedJob& estimated) {
  plan.work = estimated.work;
  plan.evaluations = estimated.evaluations;
  const auto& graph = plan.job.graph;
  const auto sizes = task_kind_of(plan.job.config.train.task).splits(graph);
  for (std::size_t split = 0; split < sizes.size(); ++split)
    plan.evaluated[split].assign(plan.epoch.ranks, static_cast<double>(sizes[split]) / plan.epoch.ranks);
}

// ---- memory ----

// By what the verdict goes by.
std::vector<CopiesChoice> compare_copies(const JobEstimates& estimates, JobSize asked,
                                         const MemoryOffer& offer) {
  std::vector<CopiesChoice> choices;
  for (std::int64_t c = 1; c <= asked.ranks; ++c) {
    if (asked.ranks % c != 0) continue;
    asked.config.grid.replication.value = c;
    const auto planned = estimates.fit(asked, offer);
    choices.push_back({c, judged_memory(planned).bytes(), fits(planned, offer)});
  }
  return choices;
}

// Steps wait for what they read: it is a part of fetching.
void time_disk(Plan& plan) {
  if (!plan.disk || plan.machine->disk_gbs == 0) return;
  plan.disk->seconds =
      static_cast<double>(plan.disk->bytes) / (plan.epoch.ranks * plan.machine->disk_gbs * 1e9);
  for (const char* stage : {"fetch", "total"}) plan.seconds[stage] += plan.disk->seconds;
}

}  // namespace

Plan plan_job(const Communicator& world, const Config& config, const PlanOptions& options,
              const log::Listener& listener) {
  // 1. The job as it will be resolved.
  note_activity("opening the graph file");
  const GraphFile file(world, config.graph.file, view_of(config));
  JobFacts facts = {.world = world,
                    .config = config,
                    .kind = options.sampling ? JobKind::kSample : JobKind::kTrain,
                    .ranks = options.ranks,
                    .file = &file,
                    .graph = &file.info()};
  check_job(Moment::kGraph, facts);
  const auto order = read_job_order(world, config, file);
  const auto cut = read_job_cut(world, config, file);
  auto plan = asked_plan(world, options, config, file.info(), order, cut, listener);
  const auto asked = plan.job;
  resolve(plan.job, plan.threads);
  facts.order = order ? &order->info : nullptr;
  facts.size = &plan.job;
  if (!plan.job.gpu) facts.device = "on the CPU (no --machine with node.device = \"cuda\")";
  check_job(Moment::kGrid, facts);
  const JobEstimates estimates(world, file, asked, plan.threads);
  plan.estimated = estimates.fit(asked, plan.offer);
  const auto& estimated = plan.estimated;
  plan.job = estimated.job;
  plan.epoch = estimated.epoch;
  plan.program = estimated.program;
  plan.by_degrees = judged_memory(estimated);
  plan.does_not_fit = judge_memory(estimated, plan.offer).misfit;
  plan.copies = compare_copies(estimates, asked, plan.offer);
  plan.largest_bulk = largest_bulk(estimated, static_cast<double>(plan.offer.bytes));
  VertexOwners owners;
  own_vertices(world, owners, order, file, config, plan.epoch.rows());
  plan.epoch.map = std::move(owners.blocks);
  plan.epoch.groups = std::move(owners.groups);
  if (cut && plan.epoch.rows() > 1)
    plan.epoch.holders =
        std::make_shared<const RowHolders>(read_row_holders(world, file, *cut, plan.epoch.rows()));

  // 2. What an epoch asks for: counted in its own minibatches where this process can hold
  //    the matrix.
  if (options.draw == 0 || bytes_to_count(plan) > 0.8 * static_cast<double>(node_memory()))
    take_estimates(plan, estimated);
  else
    with_index_type(file.info().columns,
                    [&](auto index) { count<decltype(index)>(plan, world, file, options.draw); });

  // 3. What that costs.
  note_activity("planning");
  plan.memory = peak_memory(plan);
  plan.costs = stage_costs(plan);
  if (plan.machine) {
    plan.seconds = stage_seconds(plan, plan.costs, *plan.machine);
    time_disk(plan);
  }
  return plan;
}

void check_memory(const Communicator& world, const Plan& plan, const log::Listener& listener) {
  check_job(Moment::kMemory, {.world = world,
                              .config = plan.job.config,
                              .estimated = &plan.estimated,
                              .memory = plan.offer,
                              .listener = listener});
}

// A plan as JSON: a report (train/report.hpp) of an epoch that was not run, and what is
// planned alone.

using Json = nlohmann::ordered_json;

static Json volume_json(const StageVolume& volume) {
  return {{"total", volume.total},   {"max_rank", volume.max_rank}, {"messages", volume.messages},
          {"rounds", volume.rounds}, {"predicted", volume.total},   {"predicted_messages", volume.messages}};
}

std::string plan_json(const Plan& plan) {
  RunReport report;
  report.command = "plan";
  report.config_json = to_json(plan.job.config);
  report.ranks = plan.epoch.ranks;
  report.replication = plan.epoch.replication;
  report.threads = plan.threads;
  report.device = "cpu";
  report.graph = plan.job.graph;
  report.verified = plan.job.config.graph.verify && plan.job.graph.content.file;
  if (plan.moves_samples()) report.schedules = names_of(plan.work.schedules);
  report.peak_memory_max = std::llround(plan.memory.bytes());
  report.peak_memory_sum = report.peak_memory_max * plan.epoch.ranks;
  auto json = Json::parse(to_json(report));
  json["device"] = plan.job.config.run.device;

  Json epoch = {{"epoch", 1}};
  if (plan.work.drawn == plan.work.batches) epoch["sample_digest"] = hex(plan.work.digest);
  for (const auto& [stage, time] : plan.seconds) epoch["seconds"][stage] = time;
  for (const auto& [stage, costs] : plan.costs)
    epoch[stage.find('/') != std::string::npos ? "steps" : "bytes"][stage] = volume_json(volume_of(costs));
  if (plan.disk)
    epoch["disk"] = {{"rows", plan.disk->rows},
                     {"kept", plan.disk->rows - plan.disk->missed},
                     {"bytes", plan.disk->bytes}};
  if (plan.reads_disk_at_a_rate()) epoch["disk"]["seconds"] = plan.disk->seconds;
  epoch["batches"] = plan.work.batches;
  epoch["sampled_edges"] = std::llround(plan.work.sampled_edges);
  epoch["input_rows"] = std::llround(plan.work.input_rows);
  json["epochs"] = Json::array({epoch});

  Json details;
  details["fits"] = plan.does_not_fit.empty();
  details["judged_bytes"] = std::llround(plan.by_degrees.bytes());
  details["memory_per_rank"] = plan.offer.bytes;
  details["drawn"] = plan.work.drawn;
  details["relative_error"] = plan.work.relative_error;
  for (const auto& phase : plan.memory.phases)
    for (const auto& item : phase.items) details["memory"][phase.name][item.name] = std::llround(item.bytes);
  for (const auto& choice : plan.copies)
    details["peak_by_replication"][std::to_string(choice.replication)] = std::llround(choice.bytes);
  details["largest_bulk"] = plan.largest_bulk;
  if (plan.epoch.holders) details["row_copies"] = plan.work.copies;
  if (plan.moves_samples()) {
    for (const auto schedule : kMovingSchedules) {
      if (plan.job.config.grid.cuts() && !takes_pieces(schedule, plan.job.gpu)) continue;
      const std::vector<Schedule> all(plan.work.schedules.size(), schedule);
      details["sample_by_schedule"][name_of(schedule)] = volume_json(volume_of(sample_costs(plan, all)));
    }
  }
  if (plan.machine) details["machine"] = plan.machine->name;
  json["plan"] = details;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace espalier
