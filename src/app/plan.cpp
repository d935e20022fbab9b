// espalier plan CONFIG --ranks P: memory, bytes, messages and seconds of a job, without running it.
#include "plan.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>
#include <tuple>

#include "commands.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/process.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/base/whereabouts.hpp"
#include "espalier/comm/session.hpp"
#include "espalier/sample/epoch_plan.hpp"
#include "espalier/train/targets.hpp"
#include "job.hpp"
#include "replaceable.hpp"

namespace espalier {

namespace {

// Beyond what `plan` itself holds at its start: what a running job touches of MPI, HDF5 and the
// C library.
constexpr double kRuntimeBytes = 7e6;

// What a rank has, and by whose word.
std::pair<std::int64_t, std::string> memory_of_rank(const PlanArguments& arguments, const Config& config,
                                                    const std::optional<Machine>& machine) {
  if (!arguments.memory_per_rank.empty())
    return {parse_bytes(arguments.memory_per_rank, "--memory-per-rank"), "--memory-per-rank"};
  if (config.run.memory_limit != "auto")
    return {parse_bytes(config.run.memory_limit, "run.memory_limit"), "run.memory_limit"};
  if (!machine) return {node_memory() / arguments.ranks, "this node's over all ranks, or --memory-per-rank"};
  const auto ranks = std::min(arguments.ranks, machine->ranks_per_node);
  return {parse_bytes(machine->memory, "node.memory") / ranks, "a node's, by the machine file"};
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

void check_alone(const Communicator& world) {
  if (world.size() > 1)
    usage_error("plan is a matter of one process: --ranks says how many the job will have");
}

// `espalier plan` wrote it.
bool is_plan(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  return json.is_object() && json.contains("plan") && json.value("command", nlohmann::json()) == "plan";
}

void check_training_data(const GraphInfo& graph, const Config& config) {
  const auto& path = config.graph.file;
  check_labels(graph, path, config.train.task, "; `--sampling` plans `espalier sample`");
  if (input_tables(graph, config.model.embedding).empty())
    input_error(
        "{}: the graph has no features (/nodes/features), so there is nothing to train on; `--sampling` "
        "plans `espalier sample`, model.embedding = 64 learns a row for each vertex",
        path);
}

std::int64_t checked_replication(const JobSize& job) {
  const auto& asked = job.config.grid.replication.value;
  const auto replication = asked ? *asked : automatic_replication(job);
  if (replication > job.ranks || job.ranks % replication != 0)
    usage_error("grid.replication = {} does not divide the number of ranks, {}; choose a divisor of {}",
                replication, job.ranks, job.ranks);
  return replication;
}

std::vector<HeldTypes> held_by(const std::vector<InputTable>& tables) {
  std::vector<HeldTypes> held;
  for (const auto& table : tables) held.push_back(table.held);
  return held;
}

// The config's "auto"s as `sample` and `train` will resolve them (open_job).
Plan resolve(const PlanArguments& arguments, const Config& config, const GraphInfo& graph,
             const std::optional<Order>& order) {
  Plan plan;
  if (!arguments.machine.empty()) plan.machine = read_machine(arguments.machine);
  auto& job = plan.job;
  job.graph = graph;
  job.config = config;
  job.ranks = arguments.ranks;
  if (order) job.order = order->info;
  job.training = !arguments.sampling;
  std::tie(job.host_memory, plan.memory_source) = memory_of_rank(arguments, config, plan.machine);
  job.gpu = computes_on_gpu(config, plan.machine);
  if (job.gpu) job.device_memory = parse_bytes(plan.machine->device_memory, "node.device_memory");
  job.samples_ahead = job.training && config.run.overlap;
  const auto cores = static_cast<std::int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  plan.threads = plan.machine && config.run.threads.is_auto()
                     ? Threads{static_cast<int>(plan.machine->threads), "the machine file"}
                     : choose_threads(config.run.threads, cores / arguments.ranks, /*warns=*/true);
  const auto replication = checked_replication(job);
  job.config.run.threads.value = plan.threads.count;
  job.config.run.device = job.gpu ? "cuda" : "cpu";
  job.config.grid.replication.value = replication;
  job.config.train.batches_per_step.value = job.training
                                                ? resolved_batches_per_step(graph, config, job.ranks)
                                                : config.train.batches_per_step.value.value_or(job.ranks);
  job.config.sampler.bulk.value = resolved_bulk(job, replication);

  const auto batches = count_batches(graph.train, config.sampler.batch_size);
  plan.epoch = {.ranks = static_cast<int>(job.ranks),
                .replication = static_cast<int>(replication),
                .topology = topology_of(config),
                .sampler = config.sampler.kind,
                .shape = sampler_shape(job.config, job.graph.schema, job.ranks),
                .batches_per_step = std::min(*job.config.train.batches_per_step.value, batches),
                .bulk = *job.config.sampler.bulk.value,
                .seed = static_cast<std::uint64_t>(config.train.seed),
                .tables = held_by(input_tables(job.graph, job.config.model.embedding))};
  const auto& run = plan.job.config.run;
  if (job.training && config.model.edge_features) plan.epoch.edges = edge_table(graph).held;
  plan.epoch.learns_rows = network_shape(graph, plan.job.config).input_gradient;
  plan.epoch.steps_late = run.overlap ? std::max<std::int64_t>(1, run.prefetch_steps - 1) : 0;
  return plan;
}

// ---- counting, or estimating ----

// What counting holds: the matrix, marks for each layer, the matrix as read beside it.
double bytes_to_count(const Plan& plan) {
  auto config = plan.job.config;
  config.grid.topology = "replicated";
  const auto memory = resident_memory(plan.job.graph, config, 1, 1, false);
  return memory.total() +
         static_cast<double>(plan.job.graph.nodes) * (8.0 * static_cast<double>(config.model.layers) + 12);
}

template <class Index>
void count(Plan& plan, const Communicator& world, const GraphFile& file, std::int64_t draw) {
  const Grid grid(world, 1);
  const auto a = read_model_matrix<Index>(grid, file, block_partition(file.info().nodes, 1), plan.job.config);
  const Cpu cpu{choose_threads({}, std::thread::hardware_concurrency(), /*warns=*/false).count};
  note_activity("counting minibatches");
  plan.work = count_epoch(cpu, a, plan.epoch, file.read_split(Split::kTrain), draw);
  const auto blocks = plan.epoch.blocks(a.rows());
  for (const auto split : {Split::kTrain, Split::kValid, Split::kTest})
    plan.judged[static_cast<std::size_t>(split)] =
        count_judged(file.read_split(split), blocks, plan.epoch.replication);
  // A relation that is left out is so in all layers.
  const auto& fanouts = plan.epoch.shape.relation_fanout;
  const std::span<const std::int64_t> left_out =
      fanouts.empty() ? std::span<const std::int64_t>() : std::span(fanouts[0]);
  for (std::size_t layer = 1; plan.job.training && layer <= plan.epoch.shape.fanout.size(); ++layer) {
    note_activity("counting an evaluation");
    const auto step = chunk_rows(plan.job, plan.epoch.replication, layer);
    const bool as_before =
        layer > 2 || (layer == 2 && plan.epoch.tables.size() == 1 && plan.epoch.tables[0].all() &&
                      step == chunk_rows(plan.job, plan.epoch.replication, 1));
    plan.evaluations.push_back(
        as_before ? plan.evaluations.back()
                  : count_evaluation(a.local, blocks, plan.epoch.replication, step, a.columns.leaf(),
                                     layer == 1 ? plan.epoch.tables : std::vector{HeldTypes()}, left_out,
                                     plan.epoch.shape.weighted));
  }
}

std::vector<std::int64_t> read_degrees(const GraphFile& file, bool self_loops) {
  constexpr std::int64_t kEdgesPerPart = std::int64_t{1} << 26;
  const auto& info = file.info();
  const auto parts = block_partition(info.nodes, static_cast<int>(1 + info.edges / kEdgesPerPart));
  note_activity("reading the degrees");
  std::vector<std::int64_t> degrees;
  degrees.reserve(info.nodes);
  for (int part = 0; part < parts.parts(); ++part) {
    const auto rows = file.read_rows<std::int64_t>(parts.begin(part), parts.end(part));
    for (std::int64_t v = 0; v < rows.rows; ++v) degrees.push_back(rows.row_size(v) + (self_loops ? 1 : 0));
  }
  return degrees;
}

std::vector<EvaluationWork> estimate_evaluations(const Plan& plan, std::int64_t replication) {
  std::vector<EvaluationWork> layers;
  const auto& graph = plan.job.graph;
  for (std::size_t layer = 1; plan.job.training && layer <= plan.epoch.shape.fanout.size(); ++layer) {
    layers.push_back(estimate_evaluation(static_cast<double>(graph.nodes), static_cast<double>(graph.edges),
                                         static_cast<int>(plan.job.ranks / replication),
                                         static_cast<int>(replication),
                                         chunk_rows(plan.job, replication, layer)));
    if (layer > 1) continue;
    auto& first = layers.back();
    first.table_shares.clear();  // as if types were met in proportion to their vertices
    for (const auto& table : plan.epoch.tables)
      first.table_shares.push_back(static_cast<double>(table.count(graph.nodes)) /
                                   static_cast<double>(std::max<std::int64_t>(1, graph.nodes)));
  }
  return layers;
}

void estimate(Plan& plan, const GraphFile& file) {
  const auto& config = plan.job.config;
  const bool self_loops = adds_self_loops(config);
  const bool values = matrix_has_values(plan.job.graph, config);
  plan.work =
      estimate_epoch(read_degrees(file, self_loops), values ? 4 : 0, plan.epoch, plan.job.graph.train);
  plan.evaluations = estimate_evaluations(plan, plan.epoch.replication);
  const auto& graph = plan.job.graph;
  const std::array sizes = {graph.train, graph.valid, graph.test};
  for (std::size_t split = 0; split < sizes.size(); ++split)
    plan.judged[split].assign(plan.epoch.ranks, static_cast<double>(sizes[split]) / plan.epoch.ranks);
}

// ---- memory ----

PeakMemory peak_with(const Plan& plan, double program, const PlannedEpoch& epoch, const EpochWork& work,
                     const std::vector<EvaluationWork>& evaluations) {
  return peak_memory(plan.job, epoch, work, evaluations, program, plan.threads.count);
}

// Estimates for another number of copies, as far off as they are for the one that was counted.
std::vector<EvaluationWork> evaluations_with(const Plan& plan, std::int64_t replication) {
  auto layers = estimate_evaluations(plan, replication);
  const auto own = estimate_evaluations(plan, plan.epoch.replication);
  const auto correct = [](double& estimate, double counted, double estimated) {
    if (estimated > 0) estimate *= counted / estimated;
  };
  for (std::size_t k = 0; k < layers.size(); ++k) {
    const auto& counted = plan.evaluations[k];
    correct(layers[k].remote_rows, counted.remote_rows, own[k].remote_rows);
    correct(layers[k].most_remote_rows, counted.most_remote_rows, own[k].most_remote_rows);
    correct(layers[k].largest_input, counted.largest_input, own[k].largest_input);
    correct(layers[k].largest_entries, counted.largest_entries, own[k].largest_entries);
    layers[k].table_shares = counted.table_shares;
  }
  return layers;
}

std::vector<CopiesChoice> compare_copies(const Plan& plan, double program) {
  std::vector<CopiesChoice> choices;
  for (std::int64_t c = 1; c <= plan.job.ranks; ++c) {
    if (plan.job.ranks % c != 0) continue;
    auto epoch = plan.epoch;
    epoch.replication = static_cast<int>(c);
    const bool own = c == plan.epoch.replication;
    choices.push_back(
        {c, own ? plan.memory.bytes()
                : peak_with(plan, program, epoch, plan.work, evaluations_with(plan, c)).bytes()});
  }
  return choices;
}

// The largest number in [1, most] that fits, by bisection; 0: none does.
template <class Fits>
std::int64_t largest_that(Fits fits, std::int64_t most) {
  if (!fits(1)) return 0;
  if (fits(most)) return most;
  std::int64_t low = 1, high = most;
  while (low + 1 < high) {
    const auto middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

// A step under way takes its memory.
std::int64_t largest_depth(const Plan& plan, double program) {
  const auto fits = [&](std::int64_t depth) {
    auto other = plan;
    other.job.config.run.prefetch_steps = depth;
    return peak_with(other, program, other.epoch, other.work, other.evaluations).bytes() <=
           static_cast<double>(plan.job.host_memory);
  };
  return largest_that(fits, plan.job.config.run.prefetch_steps);
}

// What a window holds grows with its minibatches.
std::int64_t largest_bulk(const Plan& plan, double program) {
  const auto fits = [&](std::int64_t bulk) {
    auto epoch = plan.epoch;
    epoch.bulk = bulk;
    auto work = plan.work;
    work.stacked = count_batches(bulk, plan.job.ranks);
    const double more =
        static_cast<double>(work.stacked) / static_cast<double>(std::max<std::int64_t>(1, plan.work.stacked));
    const auto scale = [&](std::vector<double>& counts, std::int64_t most) {
      for (auto& count : counts) count = std::min(count * more, static_cast<double>(most));
    };
    scale(work.distinct, plan.job.graph.nodes);
    scale(work.distinct_entries, plan.job.graph.edges + plan.job.graph.nodes);
    scale(work.row_entries, std::numeric_limits<std::int64_t>::max());
    scale(work.sums, std::numeric_limits<std::int64_t>::max());
    return peak_with(plan, program, epoch, work, plan.evaluations).bytes() <=
           static_cast<double>(plan.job.host_memory);
  };
  return largest_that(fits, plan.work.batches);
}

void write_plan(const Plan& plan, const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (error) usage_error("cannot make the folder {}: {}", folder.string(), error.message());
  write_file(path, plan_json(plan));
  log::info("plan: {}", path);
}

void refuse_what_does_not_fit(const Plan& plan) {
  if (plan.fits()) return;
  std::string cures = "use more ranks";
  if (plan.epoch.replication > 1)
    cures += fmt::format(", a grid.replication below {}", plan.epoch.replication);
  if (plan.largest_bulk > 0 && plan.largest_bulk < plan.epoch.bulk)
    cures += fmt::format(", sampler.bulk = {}", plan.largest_bulk);
  if (plan.largest_depth > 0 && plan.largest_depth < plan.job.config.run.prefetch_steps)
    cures += fmt::format(", run.prefetch_steps = {}", plan.largest_depth);
  if (plan.epoch.topology == Topology::kReplicated) cures += ", grid.topology = \"partitioned\"";
  cures += ", a smaller sampler.batch_size";
  if (plan.job.training) cures += " or model.hidden" + history_cures(plan.job);
  if (plan.memory.bytes() > static_cast<double>(plan.job.host_memory))
    memory_error("does not fit: a rank needs {} and has {}; {}", bytes_in_words(plan.memory.bytes()),
                 bytes_in_words(static_cast<double>(plan.job.host_memory)), cures);
  memory_error("does not fit: a rank needs {} of its GPU and has {}; {}", bytes_in_words(plan.device_bytes()),
               bytes_in_words(static_cast<double>(plan.job.device_memory)), cures);
}

}  // namespace

void plan_command(const Communicator& world, const PlanArguments& arguments) {
  // 1. The job as it will be resolved.
  check_alone(world);
  set_memory_advice(
      "give --draw 0, which estimates from degrees and does not hold the graph, or a node with more memory");
  check_replaceable(arguments.output, "plan", is_plan);
  const double program = static_cast<double>(process_memory("VmRSS")) + kRuntimeBytes;
  const auto config = load_job_config(world, arguments.job);
  const Watchdog watchdog(config.run.stall_minutes);
  note_activity("opening the graph file");
  const GraphFile file(world, config.graph.file, view_of(config));
  check_graph(file.info(), config);
  if (!arguments.sampling) check_training_data(file.info(), config);
  const auto order = read_job_order(world, config, file);
  auto plan = resolve(arguments, config, file.info(), order);
  VertexOwners owners;
  own_vertices(owners, order, file, config, plan.epoch.rows());
  plan.epoch.map = std::move(owners.blocks);
  plan.epoch.groups = std::move(owners.groups);

  // 2. What an epoch asks for: counted in its own minibatches where this process can hold
  //    the matrix.
  if (arguments.draw == 0 || bytes_to_count(plan) > 0.8 * static_cast<double>(node_memory()))
    estimate(plan, file);
  else
    with_index_type(file.info().columns,
                    [&](auto index) { count<decltype(index)>(plan, world, file, arguments.draw); });

  // 3. What that costs.
  note_activity("planning");
  plan.memory = peak_with(plan, program, plan.epoch, plan.work, plan.evaluations);
  plan.copies = compare_copies(plan, program);
  plan.largest_bulk = largest_bulk(plan, program);
  plan.largest_depth = largest_depth(plan, program);
  const StageInput input{plan.job, plan.epoch, plan.work, plan.evaluations, plan.judged};
  plan.costs = stage_costs(input);
  if (plan.machine) plan.seconds = stage_seconds(input, plan.costs, *plan.machine);

  // 4. On screen and as JSON.
  log::info("{}", plan_page(plan));
  write_plan(plan, arguments.output.empty() ? config.output.dir + "/plan.json" : arguments.output);
  refuse_what_does_not_fit(plan);
}

}  // namespace espalier
