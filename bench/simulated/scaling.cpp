// One point of a scaling study: the batches of an epoch sampled in one bulk by GraphSAGE, then
// their input rows fetched minibatch by minibatch. Built twice: by mpicxx, where time is measured,
// and by SimGrid's smpicxx, where ranks are simulated, messages take the time of the simulated
// network, and computing takes what is charged (simulated/memory_work.hpp).
//
//     scaling [--nodes N --degree D --skew G --even-rows] [--batches K --batch B --fanout 15,10,5]
//             [--replication C --topology partitioned|replicated --schedule push]
//             [--features F --fetch-steps M]
//             [--gathers-per-second X --bytes-per-second X --seconds-per-launch X]
//
// Rank 0 prints one line of JSON and ends with "done". Seconds are of the slowest rank, `fetch` of
// a whole epoch, fetch_bytes of the steps that were done. `sample_communication` is what of a
// rank's sampling time was not charged computing, that is messages and waiting for them, mean and
// maximum over ranks; only a simulation has it.
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
#include "espalier/feature/store.hpp"
#include "espalier/sample/epoch_plan.hpp"
#include "espalier/sample/sampler.hpp"
#include "simulated/memory_work.hpp"
#include "simulated/skewed_rows.hpp"

namespace espalier::bench {
namespace {

using Index = std::int32_t;

struct Options {
  GraphShape graph;
  bool even_rows = false;
  std::int64_t batches = 64, batch = 16, features = 0, fetch_steps = 4;
  std::vector<std::int64_t> fanout = {15, 10, 5};
  int replication = 1;
  std::string topology = "partitioned", schedule = "push";
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
  app.add_option("--batches", options.batches)->check(CLI::PositiveNumber);
  app.add_option("--batch", options.batch)->check(CLI::PositiveNumber);
  app.add_option("--fanout", options.fanout)->delimiter(',');
  app.add_option("--replication", options.replication);
  app.add_option("--topology", options.topology)->check(CLI::IsMember({"partitioned", "replicated"}));
  app.add_option("--schedule", options.schedule);
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

// The ranks that hold the same rows share the making of them.
DistCsr<Index> make_matrix(const Grid& grid, const Options& options) {
  const bool replicated = options.topology == "replicated";
  const auto ranges =
      row_ranges(grid, options.graph.nodes, replicated ? Topology::kReplicated : Topology::kPartitioned);
  auto a = empty_dist_csr<Index>(grid, ranges);
  const auto& sharers = replicated ? grid.world() : grid.row_comm();
  const auto begin = ranges.begin(a.part), rows = ranges.size(a.part);
  const auto shares = block_partition(rows, sharers.size());
  Buffer<Index> my_sizes, my_columns;
  SkewedRows(options.graph)
      .make(begin + shares.begin(sharers.rank()), begin + shares.end(sharers.rank()), my_sizes, my_columns);
  const auto sizes = sharers.all_gather_v(std::span<const Index>(my_sizes), "setup");
  a.local.indices = sharers.all_gather_v(std::span<const Index>(my_columns), "setup");
  a.local.rows = rows;
  a.local.columns = options.graph.nodes;
  a.local.indptr.resize(static_cast<std::size_t>(rows) + 1);
  std::inclusive_scan(sizes.begin(), sizes.end(), a.local.indptr.begin() + 1, std::plus<>(), std::int64_t{0});
  return a;
}

float feature(std::int64_t vertex, std::int64_t j) {
  return static_cast<float>((vertex * 31 + j * 7) % 2048) / 8.0f;
}

FeatureStore make_features(const Grid& grid, const Options& options) {
  auto partition = block_partition(options.graph.nodes, grid.rows());
  const auto begin = partition.begin(grid.row());
  Matrix<float> local(partition.size(grid.row()), options.features);
  for (std::int64_t i = 0; i < local.rows; ++i)
    for (std::int64_t j = 0; j < local.columns; ++j) local(i, j) = feature(begin + i, j);
  return {grid, std::move(partition), std::move(local)};
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
Fetched fetch_all(const Grid& grid, const Options& options, const std::vector<Minibatch>& minibatches) {
  const auto store = make_features(grid, options);
  const auto steps = count_batches(options.batches, grid.ranks());
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

void run(const Communicator& world, const Options& options) {
  // 1. The machine, the grid, the graph.
  use_simulated_clock(options.rates);
  const Grid grid(world, options.replication);
  const auto a = make_matrix(grid, options);
  const auto entries = world.all_reduce(a.local.entries(), Reduction::kSum, "report") /
                       (options.topology == "replicated" ? grid.ranks() : grid.replication());

  // 2. All batches, in one bulk.
  const auto sampler =
      make_sampler<Index>("graphsage", a,
                          {.fanout = options.fanout,
                           .schedule = schedule_of(options.schedule),
                           .batch_size = options.batch,
                           .batches_per_rank = static_cast<double>(options.batches) / grid.ranks()});
  const auto training = SkewedRows(options.graph).choose_vertices(options.batches * options.batch);
  const EpochPlan plan(training, options.batch, options.batches, grid.ranks(), 1, 1);
  std::vector<SeedBatch> mine;
  for (std::int64_t b = 0; b < plan.batches(); ++b)
    if (plan.rank_of(b) == world.rank()) mine.push_back({b, plan.seeds(b)});
  grid.traffic().clear();
  const Stopwatch watch(world);
  const auto minibatches = sampler->sample({1}, mine, plan.seed(), plan.epoch());
  const auto sampling = watch.stop();
  const auto sample_moved = moved(grid, "sample");

  // 3. What was sampled.
  std::uint64_t counts[] = {sample_digests({1}, minibatches), 0, 0, 0};
  for (const auto& minibatch : minibatches) {
    counts[1] += static_cast<std::uint64_t>(minibatch.sampled_edges());
    counts[2] += static_cast<std::uint64_t>(minibatch.vertices.size());
    counts[3] += 1;
  }
  world.all_reduce(std::span<std::uint64_t>(counts), Reduction::kSum, "report");

  // 4. The input rows.
  Fetched fetched;
  if (options.features > 0) fetched = fetch_all(grid, options, minibatches);
  const auto fetch_moved = moved(grid, "fetch");

  log::info(
      R"({{"machine": "{}", "p": {}, "c": {}, "topology": "{}", "schedule": "{}", "nodes": {}, "entries": {}, )"
      R"("batches": {}, "batch": {}, "features": {}, "edges": {}, "input_rows": {}, "digest": "{:016x}", )"
      R"("sample": {:.9f}, "sample_charged": {:.9f}, "sample_communication": {:.9f}, )"
      R"("sample_communication_max": {:.9f}, "sample_bytes": {}, "sample_messages": {}, )"
      R"("fetch": {:.9f}, "fetch_bytes": {}, "fetch_messages": {}, "wrong": {}}})",
      kMachine, grid.ranks(), options.replication, options.topology, options.schedule, a.rows(), entries,
      counts[3], options.batch, options.features, counts[1], counts[2], counts[0], sampling.total,
      sampling.charged_mean, sampling.communication_mean, sampling.communication_max, sample_moved.bytes,
      sample_moved.messages, fetched.seconds, fetch_moved.bytes, fetch_moved.messages, fetched.wrong);
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
