// One point of a scaling study: the batches of an epoch sampled in one bulk by GraphSAGE, then
// their input rows fetched minibatch by minibatch. Built twice: by mpicxx, where time is measured,
// and by SimGrid's smpicxx, where ranks are simulated, messages take the time of the simulated
// network, and computing takes what is charged (simulated/memory_work.hpp).
//
//     scaling [--nodes N --degree D --skew G --even-rows --near P]
//             [--batches K --batch B --fanout 15,10,5 --weighted]
//             [--order none|entries|planted --groups G]
//             [--replication C --topology partitioned|replicated|vertex-cut --schedule push]
//             [--features F --fetch-steps M]
//             [--gathers-per-second X --bytes-per-second X --seconds-per-launch X]
//
// Rank 0 prints one line of JSON and ends with "done". Seconds are of the slowest rank, `fetch` of
// a whole epoch, fetch_bytes of the steps that were done. `sample_communication` is what of a
// rank's sampling time was not charged computing, that is messages and waiting for them, mean and
// maximum over ranks; only a simulation has it. `cut` is the share of entries between the p/c
// parts; `local_rows` counts the input rows that their rank has; `edges_max` and `remote_max` are
// the most sampled edges and remote input rows of a rank over the mean.
//
// Verification: every fetched value on every rank (`wrong`); the sample digest, which
// bench/simulated/run.py compares between all runs, simulated and real.
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <numeric>
#include <optional>

#include "espalier/base/clock.hpp"
#include "espalier/base/log.hpp"
#include "espalier/comm/session.hpp"
#include "espalier/feature/row_store.hpp"
#include "espalier/partition/order.hpp"
#include "espalier/sample/epoch_plan.hpp"
#include "espalier/sample/sampler.hpp"
#include "simulated/memory_work.hpp"
#include "simulated/planted_order.hpp"

namespace espalier::bench {
namespace {

using Index = std::int32_t;

struct Options {
  GraphShape graph;
  bool even_rows = false;
  std::int64_t batches = 64, batch = 16, features = 0, fetch_steps = 4;
  std::vector<std::int64_t> fanout = {15, 10, 5};
  int replication = 1;
  std::string topology = "partitioned", schedule = "push", order = "none";
  std::int32_t groups = 0;
  bool weighted = false;
  WorkRates rates = {12e9, 1.1e12, 5e-6};
};

// Nothing when the program is to end at once, as after --help.
std::optional<Options> parse(int argc, char** argv) {
  Options options;
  CLI::App app("one point of a scaling study, simulated or measured");
  app.add_option("--nodes", options.graph.nodes);
  app.add_option("--degree", options.graph.degree);
  app.add_option("--skew", options.graph.skew);
  app.add_flag("--even-rows", options.even_rows, "rows of one length, also those of hubs");
  app.add_option("--near", options.graph.near, "share of entries inside of communities")
      ->check(CLI::Range(0.0, 0.999));
  app.add_option("--batches", options.batches)->check(CLI::PositiveNumber);
  app.add_option("--batch", options.batch)->check(CLI::PositiveNumber);
  app.add_option("--fanout", options.fanout)->delimiter(',');
  app.add_option("--replication", options.replication);
  app.add_option("--topology", options.topology)
      ->check(CLI::IsMember({"partitioned", "replicated", "vertex-cut"}));
  app.add_option("--schedule", options.schedule);
  app.add_flag("--weighted", options.weighted, "draws by weight, as a race");
  app.add_option("--order", options.order,
                 "who owns what: even ranges of ids, or even in entries; communities")
      ->check(CLI::IsMember({"none", "entries", "planted"}));
  app.add_option("--groups", options.groups, "of local batches, which take an order; 0: uniform batches")
      ->check(CLI::Range(std::int64_t{0}, SkewedRows::kClusters));
  app.add_option("--features", options.features, "columns of H; 0: nothing is fetched");
  app.add_option("--fetch-steps", options.fetch_steps, "steps whose rows are fetched, at most")
      ->check(CLI::PositiveNumber);
  app.add_option("--gathers-per-second", options.rates.gathers_per_second)->check(CLI::PositiveNumber);
  app.add_option("--bytes-per-second", options.rates.bytes_per_second)->check(CLI::PositiveNumber);
  app.add_option("--seconds-per-launch", options.rates.seconds_per_launch)->check(CLI::NonNegativeNumber);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (app.exit(error) != 0) fail_job(ExitCode::kUsage, "wrong arguments");
    return {};
  }
  if (options.groups > 0 && options.order != "planted")
    fail_job(ExitCode::kUsage, "--groups takes an --order");
  options.graph.hubs_are_long = !options.even_rows;
  return options;
}

// ---- The two machines ---------------------------------------------------------------------------

double charged_seconds = 0;  // of this rank: the simulator gives every rank its own copy

#ifdef ESPALIER_SIMULATED
constexpr const char* kMachine = "simulated";
constexpr double kHostFlops = 1e12;  // of every host of bench/simulated/perlmutter.py

void use_simulated_clock(const WorkRates& rates) {
  set_clock({[] { return MPI_Wtime(); },
             [](double seconds) {
               charged_seconds += seconds;
               smpi_execute_flops(seconds * kHostFlops);
             }});
  charge_memory_steps(rates);
}
#else
constexpr const char* kMachine = "measured";
void use_simulated_clock(const WorkRates&) {}
#endif

// ---- The graph and its features -----------------------------------------------------------------

// A point's graph, and who has what of it.
struct Problem {
  SkewedRows rows;
  std::vector<std::int64_t> training;  // ascending
  std::optional<Order> order;
  Ownership blocks;  // of H, and of A where it is partitioned
};

// Ranges of ids whose rows have as many entries, as far as rows allow.
RowPartition even_in_entries(const SkewedRows& rows, std::int64_t nodes, int parts) {
  std::vector<std::int64_t> before = {0}, offsets = {0};
  for (std::int64_t v = 0; v < nodes; ++v) before.push_back(before.back() + rows.size_of(v));
  for (int part = 1; part < parts; ++part)
    offsets.push_back(std::ranges::lower_bound(before, before.back() * part / parts) - before.begin());
  offsets.push_back(nodes);
  return RowPartition(std::move(offsets));
}

Problem pose(const Grid& grid, const Options& options) {
  const auto nodes = options.graph.nodes;
  Problem problem{.rows = SkewedRows(options.graph),
                  .training = {},
                  .order = {},
                  .blocks = block_partition(nodes, grid.rows())};
  problem.training = problem.rows.choose_vertices(options.batches * options.batch);
  if (options.order == "entries") problem.blocks = even_in_entries(problem.rows, nodes, grid.rows());
  if (options.order != "planted") return problem;
  problem.order = planted_order(grid.world(), problem.rows, nodes, problem.training);
  problem.blocks = own_by(*problem.order, grid.rows());
  return problem;
}

struct Made {
  DistCsr<Index> a;
  std::int64_t entries = 0;
  double cut = 0;  // of them, the share that is between parts of `blocks`; of a vertex cut, the
                   // block rows that hold some of a row, on average
};

// The rows of the vertices at `places` of a part.
struct RowsOfPart {
  Buffer<Index> sizes, columns;
  std::int64_t cut = 0;
};

RowsOfPart make_rows(const Problem& problem, const Ownership& ownership, int part, RowRange places) {
  RowsOfPart made;
  std::size_t seen = 0;
  for (const auto& range : ownership.vertices(part, places))
    for (auto v = range.begin; v < range.end; ++v) {
      problem.rows.make(v, v + 1, made.sizes, made.columns);
      const int owner = problem.blocks.owner(v);
      for (; seen < made.columns.size(); ++seen)
        made.cut += problem.blocks.owner(made.columns[seen]) != owner;
    }
  return made;
}

float weight(std::int64_t v, std::int64_t u) {
  return static_cast<float>(1 + (v * 31 + u * 17) % 8);
}

// Each rank of a process column makes an even range of the rows. An entry lies with the owner
// of that of its ends which has fewer of them: the rows of hubs are spread over the parts of
// their neighbours (degree-based hashing, Xie et al. 2014; with an order by communities instead
// of a hash).
Made deal_entries(const Grid& grid, const Options& options, const Problem& problem) {
  const auto& column = grid.column_comm();
  const auto mine = even_range(options.graph.nodes, column.size(), column.rank());
  Csr<Index> rows;
  Buffer<Index> sizes;
  problem.rows.make(mine.begin, mine.end, sizes, rows.indices);
  rows.rows = mine.size();
  rows.columns = options.graph.nodes;
  rows.indptr.resize(sizes.size() + 1);
  std::inclusive_scan(sizes.begin(), sizes.end(), rows.indptr.begin() + 1, std::plus<>(), std::int64_t{0});
  Buffer<std::uint16_t> parts;
  for (auto v = mine.begin; v < mine.end; ++v)
    for (const auto u : rows.row_indices(v - mine.begin)) {
      const bool by_column = problem.rows.size_of(u) < problem.rows.size_of(v);
      parts.push_back(static_cast<std::uint16_t>(problem.blocks.owner(by_column ? u : v)));
      if (options.weighted) rows.values.push_back(weight(v, u));
    }
  const auto entries = column.all_reduce(rows.entries(), Reduction::kSum, "report");
  auto a = deal_cut(grid, rows, problem.blocks, std::move(parts));
  const auto copies = column.all_reduce(a.local.rows, Reduction::kSum, "report");
  return {count_rows(std::move(a), options.weighted ? WholeRowFacts::kSupports : WholeRowFacts::kPlaces),
          entries, static_cast<double>(copies) / static_cast<double>(options.graph.nodes)};
}

// The ranks that hold the same rows share the making of them.
Made make_matrix(const Grid& grid, const Options& options, const Problem& problem) {
  if (options.topology == "vertex-cut") return deal_entries(grid, options, problem);
  const bool replicated = options.topology == "replicated";
  auto a = empty_dist_csr<Index>(
      grid, replicated ? row_ranges(grid, options.graph.nodes, Topology::kReplicated) : problem.blocks);
  const auto& sharers = replicated ? grid.world() : grid.row_comm();
  const auto rows = a.ownership.size(a.part);
  const auto shares = block_partition(rows, sharers.size());
  const auto mine =
      make_rows(problem, a.ownership, a.part, {shares.begin(sharers.rank()), shares.end(sharers.rank())});
  const auto sizes = sharers.all_gather_v(std::span<const Index>(mine.sizes), "setup");
  a.local.indices = sharers.all_gather_v(std::span<const Index>(mine.columns), "setup");
  a.local.rows = rows;
  a.local.columns = options.graph.nodes;
  a.local.indptr.resize(static_cast<std::size_t>(rows) + 1);
  std::inclusive_scan(sizes.begin(), sizes.end(), a.local.indptr.begin() + 1, std::plus<>(), std::int64_t{0});
  if (options.weighted)
    a.for_each_row([&](std::int64_t row, std::int64_t v) {
      for (const auto u : a.local.row_indices(row)) a.local.values.push_back(weight(v, u));
    });
  a.has_values = a.local.weighted = options.weighted;
  std::int64_t sums[] = {std::ssize(mine.columns), mine.cut};
  grid.world().all_reduce(std::span<std::int64_t>(sums), Reduction::kSum, "report");
  return {std::move(a), sums[0], static_cast<double>(sums[1]) / static_cast<double>(sums[0])};
}

float feature(std::int64_t vertex, std::int64_t j) {
  return static_cast<float>((vertex * 31 + j * 7) % 2048) / 8.0f;
}

RowStore make_features(const Grid& grid, const Options& options, const Ownership& blocks) {
  Matrix<float> local(blocks.size(grid.row()), options.features);
  for (std::int64_t i = 0; i < local.rows; ++i)
    for (std::int64_t j = 0; j < local.columns; ++j) local(i, j) = feature(blocks.vertex(grid.row(), i), j);
  return {grid, blocks, std::move(local)};
}

// ---- What is timed ------------------------------------------------------------------------------

/// Of the slowest rank, and what of it was not charged.
struct Seconds {
  double total = 0, communication_mean = 0, communication_max = 0, charged_mean = 0;
};

class Stopwatch {
 public:
  explicit Stopwatch(const Communicator& world) : world_(world) {
    world_.barrier();
    start_ = now();
    charged_ = charged_seconds;
  }
  /// Collective.
  Seconds stop() const {
    const double total = now() - start_, charged = charged_seconds - charged_;
    const auto mean = [&](double mine) {
      return world_.all_reduce(mine, Reduction::kSum, "report") / world_.size();
    };
    return {world_.all_reduce(total, Reduction::kMax, "report"), mean(total - charged),
            world_.all_reduce(total - charged, Reduction::kMax, "report"), mean(charged)};
  }

 private:
  const Communicator& world_;
  double start_ = 0, charged_ = 0;
};

struct Fetched {
  double seconds = 0;
  std::int64_t wrong = 0;
};

// Step by step, as training does: one minibatch per rank, none where a rank has no more. Of the
// first steps; the seconds of all are as many times theirs.
Fetched fetch_all(const Grid& grid, const Options& options, const RowStore& store, std::int64_t steps,
                  const std::vector<Minibatch>& minibatches) {
  Fetched fetched;
  std::vector<Matrix<float>> rows;
  const auto measured = std::min(steps, options.fetch_steps);
  for (std::int64_t step = 0; step < measured; ++step) {
    std::vector<std::span<const std::int64_t>> lists;
    if (step < std::ssize(minibatches))
      lists.emplace_back(minibatches[static_cast<std::size_t>(step)].vertices);
    const Stopwatch watch(grid.world());
    store.fetch({1}, lists, rows, "fetch");
    fetched.seconds += watch.stop().total;
    for (std::size_t m = 0; m < lists.size(); ++m)
      for (std::int64_t i = 0; i < rows[m].rows; ++i)
        for (std::int64_t j = 0; j < options.features; ++j)
          fetched.wrong += !(rows[m](i, j) == feature(lists[m][static_cast<std::size_t>(i)], j));
  }
  fetched.seconds *= static_cast<double>(steps) / static_cast<double>(measured);
  fetched.wrong = grid.world().all_reduce(fetched.wrong, Reduction::kSum, "report");
  return fetched;
}

struct Moved {
  std::int64_t bytes = 0, messages = 0;
};

/// Collective. What all ranks received in a stage.
Moved moved(const Grid& grid, const char* stage) {
  const auto mine = grid.traffic().of_stage(stage);
  std::int64_t sums[] = {mine.bytes_received, mine.messages};
  grid.world().all_reduce(std::span<std::int64_t>(sums), Reduction::kSum, "report");
  return {sums[0], sums[1]};
}

struct Sampled {
  std::uint64_t digest = 0;
  std::int64_t edges = 0, input_rows = 0, local_rows = 0, batches = 0;
  double edges_max = 0, remote_max = 0;  // of a rank, over the mean
};

/// Collective.
Sampled describe(const Grid& grid, const Ownership& blocks, const std::vector<Minibatch>& minibatches) {
  std::int64_t mine[] = {0, 0, 0, std::ssize(minibatches)};
  for (const auto& minibatch : minibatches) {
    mine[0] += minibatch.sampled_edges();
    mine[1] += std::ssize(minibatch.vertices);
    for (const auto v : minibatch.vertices) mine[2] += blocks.owner(v) == grid.row();
  }
  const auto max_over_mean = [&](std::int64_t of_rank) {
    const auto most = grid.world().all_reduce(of_rank, Reduction::kMax, "report");
    const auto sum = grid.world().all_reduce(of_rank, Reduction::kSum, "report");
    return sum == 0 ? 1 : static_cast<double>(most) * grid.ranks() / static_cast<double>(sum);
  };
  const auto edges_max = max_over_mean(mine[0]), remote_max = max_over_mean(mine[1] - mine[2]);
  const auto digest = grid.world().all_reduce(sample_digests({1}, minibatches), Reduction::kSum, "report");
  grid.world().all_reduce(std::span<std::int64_t>(mine), Reduction::kSum, "report");
  return {digest, mine[0], mine[1], mine[2], mine[3], edges_max, remote_max};
}

void run(const Communicator& world, const Options& options) {
  // 1. The machine, the grid, the graph and who owns it.
  use_simulated_clock(options.rates);
  const Grid grid(world, options.replication);
  const auto problem = pose(grid, options);
  const auto [a, entries, cut] = make_matrix(grid, options, problem);

  // 2. All batches, in one bulk; a step has one for each rank.
  std::optional<BatchGroups> groups;
  if (options.groups > 0) groups = group_batches(*problem.order, problem.training, options.groups);
  const EpochPlan plan(problem.training, options.batch, grid.ranks(), grid.ranks(), 1, 1, {},
                       groups ? &*groups : nullptr);
  const auto sampler =
      make_sampler<Index>("graphsage", a,
                          {.fanout = options.fanout,
                           .weighted = options.weighted,
                           .draw = DrawLaw::kRace,
                           .schedule = schedule_of(options.schedule),
                           .batch_size = options.batch,
                           .batches_per_rank = static_cast<double>(plan.batches()) / grid.ranks()});
  std::vector<SeedBatch> mine;
  for (const auto b : plan.kept_by(world.rank(), 0, plan.batches())) mine.push_back(plan.batch(b));
  grid.traffic().clear();
  const Stopwatch watch(world);
  const auto minibatches = sampler->sample({1}, mine, plan.seed(), plan.epoch());
  const auto sampling = watch.stop();
  const auto sample_moved = moved(grid, "sample");
  const auto sampled = describe(grid, problem.blocks, minibatches);

  // 3. The input rows.
  Fetched fetched;
  if (options.features > 0)
    fetched =
        fetch_all(grid, options, make_features(grid, options, problem.blocks), plan.steps(), minibatches);
  const auto fetch_moved = moved(grid, "fetch");

  log::info(
      R"({{"machine": "{}", "p": {}, "c": {}, "topology": "{}", "schedule": "{}", "order": "{}", "groups": {}, )"
      R"("nodes": {}, "entries": {}, "cut": {:.4f}, "batches": {}, "batch": {}, "features": {}, "edges": {}, )"
      R"("input_rows": {}, "local_rows": {}, "edges_max": {:.4f}, "remote_max": {:.4f}, "digest": "{:016x}", )"
      R"("sample": {:.9f}, "sample_charged": {:.9f}, "sample_communication": {:.9f}, )"
      R"("sample_communication_max": {:.9f}, "sample_bytes": {}, "sample_messages": {}, )"
      R"("fetch": {:.9f}, "fetch_bytes": {}, "fetch_messages": {}, "wrong": {}}})",
      kMachine, grid.ranks(), options.replication, options.topology, options.schedule, options.order,
      options.groups, a.rows(), entries, cut, sampled.batches, options.batch, options.features, sampled.edges,
      sampled.input_rows, sampled.local_rows, sampled.edges_max, sampled.remote_max, sampled.digest,
      sampling.total, sampling.charged_mean, sampling.communication_mean, sampling.communication_max,
      sample_moved.bytes, sample_moved.messages, fetched.seconds, fetch_moved.bytes, fetch_moved.messages,
      fetched.wrong);
}

}  // namespace
}  // namespace espalier::bench

int main(int argc, char** argv) {
  using namespace espalier;
  const Session session(&argc, &argv);
  log::set_up(session.world().rank(), log::Level::kInfo);
  try {
    const auto options = bench::parse(argc, argv);
    if (options) bench::run(session.world(), *options);
  } catch (const UserError& error) {
    fail_job(error.code(), error.what());
  }
  session.world().barrier();
  log::info("done");
  return 0;
}
