// ranks: 4
// What sampling moves between ranks: bytes counted against bytes predicted, for every schedule of
// the distributed product, every sampler and every replication c <= 4 that divides p; and
// CombBLAS's 2D product.
//
//     volume_bench [--rmat SCALE EDGE_FACTOR | --graph FILE] [--fanout 15,10,5]
//                  [--layer-fanout 512,512,512] [--batch 1024] [--batches-per-rank 1]
//                  [--repeats 3] [--seed 0] [--csv FILE]
//                  [--graph-name NAME]
//
// One bulk of p * batches-per-rank batches is sampled; batch b, positions b batch .. (b+1) batch of
// the shuffled training split (again from its start when it is used up), is kept by rank b mod p.
// `--fanout` is that of the node-wise samplers, `--layer-fanout` that of ladies and fastgcn. An
// R-MAT (default: scale 14, edge factor 32) is symmetrised, without self-loops, made in a temporary
// file. bench/product/sweep.sh runs all p.
//
// Derivation: the schedules book beside every step what the alpha-beta model expects this rank to
// receive, from what it asks for and one assumption, ids spread evenly over the block rows
// (product/schedule.hpp). The column `ratio` is counted / predicted, summed over ranks. --csv
// appends one row per step with the columns
//
//     graph, p, c, schedule, sampler, label, messages, bytes_total, bytes_mean_per_rank,
//     bytes_max_rank, predicted_bytes_total, ratio, seconds
//
// bytes: received; seconds: median, slowest rank.
//
// Baseline, where p is a square: P = Q A with CombBLAS's PSpGEMM, a 2D sparse SUMMA that broadcasts
// blocks of A and Q, for the same stacked Q: rows of one nonzero (graphsage, layer by layer; the
// second layer thinned to kMostNonzeros of P) and of one batch each (ladies). Ids take 4 bytes
// there too and values one. Ours at c = 1. `push-draw` brings only the picks of each row, which is
// what a sampler needs of P.
//
// Verification: every schedule and c of one sampler gives the same sample digest; the bytes that
// wrappers over MPI see (mpi_bytes.hpp) are those of the ledger, rank by rank; every product has
// CombBLAS's nonzeros, sum and checksum.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <optional>

#include "espalier/base/log.hpp"
#include "espalier/comm/session.hpp"
#include "espalier/graph/generate.hpp"
#include "espalier/graph/graph_file.hpp"
#include "espalier/product/product.hpp"
#include "espalier/sample/epoch_plan.hpp"
#include "espalier/sample/sampler.hpp"
#include "product/volume_lines.hpp"
#include "rates.hpp"
#ifdef ESPALIER_WITH_COMBBLAS
#include "product/combblas_product.hpp"
#endif

namespace espalier::bench {
namespace {

using Index = std::int32_t;
using Ids = Buffer<std::int64_t>;

constexpr std::uint64_t kEpoch = 1;
constexpr int kMostReplication = 4;
constexpr double kMostNonzeros = 1 << 25;
constexpr Schedule kSchedules[] = {Schedule::kStaged, Schedule::kStagedOblivious, Schedule::kPull,
                                   Schedule::kPush};
constexpr const char* kSamplers[] = {"graphsage", "labor", "ladies", "fastgcn"};

struct Options {
  std::vector<std::int64_t> rmat = {14, 32};
  std::string graph, graph_name, csv;
  std::vector<std::int64_t> fanout = {15, 10, 5}, layer_fanout = {512, 512, 512};
  std::int64_t batch = 1024, batches_per_rank = 1;
  int repeats = 3;
  std::uint64_t seed = 0;  // of the R-MAT, the shuffle and the samples
};

// Nothing when the program is to end at once, as after --help.
std::optional<Options> parse(int argc, char** argv, bool speaks) {
  Options options;
  CLI::App app("bytes of sampling, counted against predicted");
  app.add_option("--rmat", options.rmat)->expected(2);
  app.add_option("--graph", options.graph);
  app.add_option("--graph-name", options.graph_name);
  app.add_option("--fanout", options.fanout)->delimiter(',');
  app.add_option("--layer-fanout", options.layer_fanout)->delimiter(',');
  app.add_option("--batch", options.batch)->check(CLI::PositiveNumber);
  app.add_option("--batches-per-rank", options.batches_per_rank)->check(CLI::PositiveNumber);
  app.add_option("--repeats", options.repeats)->check(CLI::PositiveNumber);
  app.add_option("--seed", options.seed);
  app.add_option("--csv", options.csv);
  std::string unused;  // make bench gives it to every bench
  app.add_option("--benchmark_out", unused)->group("");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (speaks) app.exit(error);
    return std::nullopt;
  }
  if (options.graph_name.empty())
    options.graph_name = options.graph.empty() ? fmt::format("rmat-{}-{}", options.rmat[0], options.rmat[1])
                                               : std::filesystem::path(options.graph).stem().string();
  return options;
}

/// The batches of one rank, from the shuffled training vertices.
class Batches {
 public:
  Batches(const Communicator& world, std::span<const std::int64_t> training, const Options& options) {
    const EpochPlan plan(training, std::ssize(training), 1, 1, options.seed, kEpoch);
    const auto batch = plan.batch(0);
    const auto order = batch.seeds();
    const auto size = std::min(options.batch, std::ssize(order));
    seeds_.reserve(static_cast<std::size_t>(options.batches_per_rank));
    for (std::int64_t k = 0; k < options.batches_per_rank; ++k) {
      const auto number = k * world.size() + world.rank();
      auto& seeds = seeds_.emplace_back();
      for (std::int64_t s = 0; s < size; ++s)
        seeds.push_back(order[static_cast<std::size_t>((number * size + s) % std::ssize(order))]);
      batches_.push_back({number, seeds});
    }
  }
  std::span<const SeedBatch> mine() const { return batches_; }

 private:
  std::vector<Ids> seeds_;
  std::vector<SeedBatch> batches_;
};

// ---- Every schedule, sampler and c --------------------------------------------------------------

bool is_layer_wise(const std::string& sampler) {
  return sampler_kind_of(sampler).layer_wise;
}

class Sweep {
 public:
  Sweep(const Communicator& world, const GraphFile& file, const Options& options, Output& output)
      : world_(world),
        file_(file),
        options_(options),
        output_(output),
        batches_(world, file.read_split(Split::kTrain), options),
        digests_(std::size(kSamplers)) {}

  void measure(int replication) {
    const Grid grid(world_, replication);
    const auto a = read_dist_csr<Index>(grid, file_, Topology::kPartitioned);
    const auto mean = normalize_rows(a, false, false);
    for (std::size_t k = 0; k < std::size(kSamplers); ++k)
      for (const auto schedule : kSchedules)
        measure(is_layer_wise(kSamplers[k]) ? mean : a, kSamplers[k], schedule, digests_[k]);
  }

  std::span<const SeedBatch> batches() const { return batches_.mine(); }

 private:
  // `digest`: that of the first schedule and c.
  void measure(const DistCsr<Index>& matrix, const std::string& name, Schedule schedule,
               std::optional<std::uint64_t>& digest) {
    const auto sampler = make_sampler(
        name, matrix,
        {.fanout = is_layer_wise(name) ? options_.layer_fanout : options_.fanout, .schedule = schedule});
    const auto sample = [&] { return sampler->sample(Cpu{1}, batches_.mine(), options_.seed, kEpoch); };
    Line line = {
        .c = matrix.grid->replication(), .schedule = name_of(schedule), .sampler = name, .label = "sample"};
    std::vector<Minibatch> minibatches;
    count_bytes(world_, line, [&] { minibatches = sample(); });
    std::uint64_t mine = 0;
    std::int64_t edges = 0;
    for (const auto& minibatch : minibatches) {
      mine += sample_digest(minibatch);
      edges += minibatch.sampled_edges();
    }
    minibatches.clear();
    mine = world_.all_reduce(mine, Reduction::kSum, "bench");
    edges = world_.all_reduce(edges, Reduction::kSum, "bench");
    if (!digest) digest = mine;
    line.wrong += mine != *digest || edges == 0;
    time_again(world_, line, options_.repeats, [&] { sample(); });
    output_.add(line);
  }

  const Communicator& world_;
  const GraphFile& file_;
  const Options& options_;
  Output& output_;
  Batches batches_;
  std::vector<std::optional<std::uint64_t>> digests_;  // [kSamplers]
};

// ---- The baseline -------------------------------------------------------------------------------

#ifdef ESPALIER_WITH_COMBBLAS

Line baseline_line(const Communicator& world, CombBlas& combblas, const Problem& problem, int repeats,
                   Fingerprint& expected) {
  Line line = {.schedule = "combblas-2d", .sampler = problem.sampler, .label = problem.label};
  const Silence silence;
  combblas.take(problem);
  world.barrier();
  const auto before = mpi_bytes_received;
  line.seconds = seconds_of([&] { combblas.multiply(); });
  double bytes = static_cast<double>(mpi_bytes_received - before), most = bytes;
  line.seconds = world.all_reduce(line.seconds, Reduction::kMax, "bench");
  bytes = world.all_reduce(bytes, Reduction::kSum, "bench");
  most = world.all_reduce(most, Reduction::kMax, "bench");
  line.steps = {{.bytes = bytes, .most = most}};
  expected = combblas.fingerprint().total(world);
  line.wrong = expected.nonzeros == 0;
  time_again(world, line, repeats, [&] { combblas.multiply(); });
  return line;
}

void compare_products(const Communicator& world, CombBlas& combblas, const DistCsr<Index>& a,
                      const Problem& problem, int repeats, Output& output) {
  Fingerprint expected;
  output.add(baseline_line(world, combblas, problem, repeats, expected));
  for (const auto schedule : kSchedules) {
    Line line = {.schedule = name_of(schedule), .sampler = problem.sampler, .label = problem.label};
    Fingerprint mine;
    const auto multiply = [&] { mine = product(problem, a, schedule, TakeRow::kWhole); };
    count_bytes(world, line, multiply);
    line.wrong += !(mine.total(world) == expected);
    time_again(world, line, repeats, multiply);
    output.add(line);
  }
  if (problem.one_row_per_batch) return;
  Line line = {.schedule = "push-draw", .sampler = problem.sampler, .label = problem.label};
  const auto draw = [&] { product(problem, a, Schedule::kPush, problem.fanout); };
  count_bytes(world, line, draw);
  time_again(world, line, repeats, draw);
  output.add(line);
}

/// Every k-th vertex of each frontier, so that P has no more than kMostNonzeros nonzeros over
/// all ranks.
Frontier thinned(const Communicator& world, const DistCsr<Index>& a, const Frontier& q, std::int64_t& every) {
  const auto lengths =
      open_product(Cpu{1}, q, a, Schedule::kPush, "bench")->apply(Cpu{1}, TakeRow(TakeRow::kLengthOnly));
  double nonzeros = 0;
  for (const auto length : lengths.ids) nonzeros += length;
  nonzeros = world.all_reduce(nonzeros, Reduction::kSum, "bench");
  every = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(nonzeros / kMostNonzeros)));
  std::vector<Ids> kept(q.batches());
  for (std::int64_t b = 0; b < q.batches(); ++b)
    for (auto r = q.begin(b); r < q.offsets[b + 1]; r += every) kept[b].push_back(q.vertices[r]);
  const auto numbers = q.numbers.host();
  return stack_frontier(Cpu{1}, kept, {numbers.begin(), numbers.end()});
}

void compare_with_combblas(const Communicator& world, const GraphFile& file,
                           std::span<const SeedBatch> batches, const Options& options, Output& output) {
  if (CombBlas::side_of(world.size()) == 0) return;
  const Grid grid(world, 1);
  const auto a = read_dist_csr<Index>(grid, file, Topology::kPartitioned);
  CombBlas combblas(world, file);

  std::vector<std::span<const std::int64_t>> seeds;
  std::vector<std::int64_t> numbers;
  for (const auto& batch : batches) {
    seeds.emplace_back(batch.seeds());
    numbers.push_back(batch.number);
  }
  const auto first = stack_frontier(Cpu{1}, seeds, numbers);
  const auto sampler =
      make_sampler("graphsage", a, {.fanout = {options.fanout.front()}, .schedule = Schedule::kPush});
  std::vector<Ids> vertices;
  numbers.clear();
  for (const auto& minibatch : sampler->sample(Cpu{1}, batches, options.seed, kEpoch)) {
    vertices.emplace_back(minibatch.vertices.begin(), minibatch.vertices.end());
    numbers.push_back(minibatch.number);
  }
  std::int64_t every = 1;
  const auto second = thinned(world, a, stack_frontier(Cpu{1}, vertices, numbers), every);

  output.title("P = Q A, one row per seed (c = 1; no digest: checked against CombBLAS)");
  compare_products(world, combblas, a,
                   {world, "graphsage", "product-1", first, false, options.fanout.front()}, options.repeats,
                   output);
  output.title(fmt::format("P = Q A, one row per vertex of the second layer{}",
                           every > 1 ? fmt::format(", one in {} of them", every) : ""));
  compare_products(
      world, combblas, a,
      {world, "graphsage", "product-2", second, false, options.fanout[options.fanout.size() > 1]},
      options.repeats, output);
  output.title("P = Q A, one row per batch of seeds");
  compare_products(world, combblas, a, {world, "ladies", "product-1", first, true, 0}, options.repeats,
                   output);
}

#endif

// ---- The graph ----------------------------------------------------------------------------------

/// A temporary file that rank 0 removes at the end.
class TemporaryRmat {
 public:
  TemporaryRmat(const Communicator& world, const Options& options) : world_(world) {
    const auto name = fmt::format("espalier-volume-{}.h5", getpid());
    path_ = world.broadcast_text((std::filesystem::temp_directory_path() / name).string(), 0, "bench");
    generate_rmat(world,
                  {.scale = options.rmat[0],
                   .edge_factor = options.rmat[1],
                   .symmetrize = true,
                   .drop_self_loops = true},
                  {.features = 0, .seed = options.seed}, path_);
  }
  ~TemporaryRmat() {
    world_.barrier();
    if (world_.rank() == 0) std::filesystem::remove(path_);
  }
  TemporaryRmat(const TemporaryRmat&) = delete;
  TemporaryRmat& operator=(const TemporaryRmat&) = delete;
  const std::string& path() const { return path_; }

 private:
  const Communicator& world_;
  std::string path_;
};

std::int64_t run(const Communicator& world, const std::string& path, const Options& options) {
  const GraphFile file(world, path);
  const auto& graph = file.info();
  Output output(options.graph_name, options.csv, world.size(), world.rank() == 0);
  Sweep sweep(world, file, options, output);
  output.title(
      fmt::format("{}: {} vertices, {} entries, mean degree {:.1f}; {} ranks, {} batches of {}; fanout {}, "
                  "layer-wise {}; bytes received",
                  options.graph_name, graph.nodes, graph.edges,
                  static_cast<double>(graph.edges) / static_cast<double>(graph.nodes), world.size(),
                  world.size() * options.batches_per_rank, options.batch, listed(options.fanout),
                  listed(options.layer_fanout)));
  for (int c = 1; c <= std::min(kMostReplication, world.size()); ++c)
    if (world.size() % c == 0) sweep.measure(c);
#ifdef ESPALIER_WITH_COMBBLAS
  compare_with_combblas(world, file, sweep.batches(), options, output);
#else
  if (world.rank() == 0) fmt::print("# no baseline: built without CombBLAS (Debian: libcombblas-dev)\n");
#endif
  if (world.rank() == 0) fmt::print("#wrong {}\n", output.wrong());
  return output.wrong();
}

}  // namespace
}  // namespace espalier::bench

int main(int argc, char** argv) {
  using namespace espalier;
  using namespace espalier::bench;
  const Session session(&argc, &argv);
  const auto& world = session.world();
  log::set_up(world.rank(), log::Level::kWarning);
  const auto options = parse(argc, argv, world.rank() == 0);
  if (!options) return 2;
  try {
    if (!options->graph.empty()) return run(world, options->graph, *options) > 0;
    const TemporaryRmat rmat(world, *options);
    return run(world, rmat.path(), *options) > 0;
  } catch (const UserError& error) {
    if (world.rank() == 0) fmt::print(stderr, "volume_bench: {}\n", error.what());
    return 2;
  }
}
