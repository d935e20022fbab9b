// Rows of all vertices, and scores of links, by layers over the whole graph
// (infer/layerwise_pass.hpp), against the naive way, which computes the neighbourhood of each
// vertex or pair anew (GLISP, arXiv 2401.03114, IV-E: 7.89 x for vertices, 70.77 x for links).
//
//     naive_bench [--scale N | --graph FILE.h5]    a symmetrised R-MAT of 2^N vertices (default 15)
//
// 3 layers of SAGE, hidden 256, 64 outputs; batches of 256 vertices, or pairs of the graph's edges.
// The naive way is that of training, fanout 15,10,5, or exact, all neighbours. Its seconds are
// those of some batches, spread over all (links shuffled, as in training), times how many there
// are. A link's score is the dot product of its ends' rows.
//
//     bound       vertices, or links, that the naive way does in a second
//     ratio       how many times as many are done layer by layer
//
// Verification: exact, the naive way's rows are those of the pass to 1e-4. Rows that are computed,
// of all layers, for each vertex or link, are in the title.
#include <cmath>
#include <numeric>

#include "espalier/comm/session.hpp"
#include "espalier/feature/input_stores.hpp"
#include "espalier/graph/graph_file.hpp"
#include "espalier/infer/layerwise_pass.hpp"
#include "rates.hpp"
#include "rmat.hpp"

namespace espalier::bench {
namespace {

constexpr std::int64_t kBatch = 256, kBatches = 4;
constexpr std::int64_t kWidth = 128;
const std::vector<std::int64_t> kFanout = {15, 10, 5}, kAll = {-1, -1, -1};

Matrix<float> random_rows(std::int64_t rows, std::int64_t width) {
  Matrix<float> matrix(rows, width);
  for (std::size_t e = 0; e < matrix.data.size(); ++e)
    matrix.data[e] = static_cast<float>(2 * to_unit_double(random64({.seed = kSeed}, e)) - 1);
  return matrix;
}

/// A graph, rows of its vertices and a network, on one rank.
class Problem {
 public:
  Problem(const Grid& grid, Csr<std::int32_t> a, Matrix<float> rows)
      : vertices_(a.rows),
        shape_({.kind = "sage", .layers = 3, .inputs = rows.columns, .hidden = 256, .classes = 64}),
        a_(distribute(grid, a, block_partition(a.rows, 1))),
        features_(RowStore(grid, block_partition(a.rows, 1), std::move(rows))),
        network_(shape_, kSeed),
        whole_rows_(make_sampler("graphsage", a_, whole_rows_shape({.fanout = kFanout}, "infer"))),
        pass_(grid, *whole_rows_, block_partition(vertices_, 1), EntriesOfRows(a_), std::int64_t{256} << 20) {
  }

  std::int64_t vertices() const { return vertices_; }
  std::int64_t links() const { return a_.local.entries(); }
  double layers() const { return shape_.layers; }

  /// Rows of all vertices.
  Matrix<float> by_layers(const Cpu& cpu) const {
    KeptRowsOn<Cpu> last(vertices_, shape_.classes);
    std::vector<RowSink*> sinks(static_cast<std::size_t>(shape_.layers), nullptr);
    sinks.back() = &last;
    pass_.run(cpu, network_, features_, sinks, {});
    return last.release();
  }
  /// Scores of all links, from rows of all vertices.
  double score_all(const Cpu& cpu, const Matrix<float>& rows) const {
    double sum = 0;
#pragma omp parallel for num_threads(cpu.threads) schedule(dynamic, 64) reduction(+ : sum)
    for (std::int64_t v = 0; v < vertices_; ++v)
      for (const auto u : a_.local.row_indices(v)) sum += dot(rows.row(v), rows.row(u));
    return sum;
  }

  /// The ends of the links of batch k, which are spread over all as shuffled ones are.
  std::vector<std::int64_t> ends_of_links(std::int64_t k) const {
    std::vector<std::int64_t> ends;
    const auto& indptr = a_.local.indptr;
    for (std::int64_t e = k; e < links() && std::ssize(ends) < 2 * kBatch;
         e += std::max<std::int64_t>(1, links() / kBatch)) {
      ends.push_back(std::ranges::upper_bound(indptr, e) - indptr.begin() - 1);
      ends.push_back(a_.local.indices[e]);
    }
    return ends;
  }

  /// The naive way of one batch: rows of these seeds. Adds how many rows were computed.
  const Matrix<float>& naively(const Cpu& cpu, Sampler& sampler, std::vector<std::int64_t> seeds,
                               double& computed) {
    std::ranges::sort(seeds);
    seeds.erase(std::ranges::unique(seeds).begin(), seeds.end());
    const SeedBatch batch = {0, seeds};
    minibatch_ = sampler.sample(cpu, {&batch, 1}, kSeed, 1);
    features_.fetch(cpu, minibatch_, inputs_, "infer", pending_);
    for (const auto& block : minibatch_[0].blocks) computed += static_cast<double>(block.rows);
    return network_.forward(cpu, minibatch_[0].blocks, inputs_[0][0], {kSeed, 1, 0});
  }
  std::unique_ptr<Sampler> sampler(const std::vector<std::int64_t>& fanout) const {
    return make_sampler("graphsage", a_, {.fanout = fanout});
  }
  double dot(const float* u, const float* v) const {
    return std::inner_product(u, u + shape_.classes, v, 0.0);
  }

 private:
  std::int64_t vertices_;
  NetworkShape shape_;
  DistCsr<std::int32_t> a_;
  InputStores features_;
  PendingInputOn<Cpu> pending_;
  Network<float> network_;
  std::unique_ptr<Sampler> whole_rows_;
  LayerwisePass pass_;
  std::vector<Minibatch> minibatch_;
  InputMatrices<Cpu> inputs_;
};

std::vector<std::int64_t> range(std::int64_t begin, std::int64_t end) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(end - begin));
  std::iota(all.begin(), all.end(), begin);
  return all;
}

/// Some batches the naive way: seconds and computed rows of all that there are.
struct Naive {
  Problem& problem;
  std::shared_ptr<Sampler> sampler;
  bool links;

  std::int64_t all() const { return links ? problem.links() : problem.vertices(); }
  std::vector<std::int64_t> seeds(std::int64_t k) const {
    const auto first = k * (all() / kBatches);
    return links ? problem.ends_of_links(k) : range(first, std::min(all(), first + kBatch));
  }
  double seconds(const Cpu& cpu, double* computed = nullptr) const {
    double rows = 0;
    const double taken = seconds_of([&] {
      for (std::int64_t k = 0; k < kBatches; ++k) problem.naively(cpu, *sampler, seeds(k), rows);
    });
    const double times = static_cast<double>(all()) / static_cast<double>(kBatches * kBatch);
    if (computed != nullptr) *computed = rows * times;
    return taken * times;
  }
};

std::int64_t count_wrong(Problem& problem, const Matrix<float>& expected) {
  std::int64_t wrong = 0;
  const auto exact = problem.sampler(kAll);
  for (std::int64_t k = 0; k < kBatches; ++k) {
    const Naive naive{problem, {}, false};
    const auto seeds = naive.seeds(k);
    double none = 0;
    const auto& rows = problem.naively(Cpu{2}, *exact, seeds, none);
    for (std::size_t s = 0; s < seeds.size(); ++s)
      for (std::int64_t j = 0; j < rows.columns; ++j) {
        const float row = rows(static_cast<std::int64_t>(s), j), there = expected(seeds[s], j);
        wrong += !(std::abs(row - there) <= 1e-4F * (1 + std::abs(there)));
      }
  }
  return wrong;
}

Problem read_problem(const Grid& grid, const std::string& path, std::int64_t scale) {
  if (path.empty()) {
    auto a = make_rmat(scale);
    auto rows = random_rows(a.rows, kWidth);
    return {grid, std::move(a), std::move(rows)};
  }
  const GraphFile file(grid.world(), path);
  auto a = file.read_rows<std::int32_t>(0, file.info().nodes);
  a.values = {};
  return {grid, std::move(a), file.read_features<float>(0, file.info().nodes)};
}

}  // namespace
}  // namespace espalier::bench

int main(int argc, char** argv) {
  using namespace espalier;
  using namespace espalier::bench;
  const Session session(&argc, &argv);
  std::int64_t scale = 15;
  std::string path;
  for (int k = 1; k + 1 < argc; ++k) {
    if (std::string(argv[k]) == "--scale") scale = std::stoll(argv[k + 1]);
    if (std::string(argv[k]) == "--graph") path = argv[k + 1];
    if (std::string(argv[k]) != "--scale" && std::string(argv[k]) != "--graph") continue;
    std::move(argv + k + 2, argv + argc, argv + k);
    argc -= 2;
    --k;
  }
  const Grid grid(session.world(), 1);
  auto problem = read_problem(grid, path, scale);
  const auto rows = problem.by_layers(Cpu{2});
  const auto wrong = count_wrong(problem, rows);
  const auto vertices = static_cast<double>(problem.vertices()), links = static_cast<double>(problem.links());
  std::string computed;
  std::vector<Comparison> comparisons;
  for (const bool of_links : {false, true})
    for (const auto& fanout : {kFanout, kAll}) {
      const Naive naive{problem, problem.sampler(fanout), of_links};
      const auto* const way = fanout == kAll ? "exact" : "sampled";
      double naive_rows = 0;
      naive.seconds(Cpu{2}, &naive_rows);
      const double all = of_links ? links : vertices;
      computed +=
          fmt::format("\n  rows for each {}, {}: {:.1f} naively, {:.2f} by layers",
                      of_links ? "link" : "vertex", way, naive_rows / all, problem.layers() * vertices / all);
      for (const int threads : thread_counts())
        comparisons.push_back(
            {fmt::format("{}, {} {} thr", of_links ? "links" : "vertices", way, threads), all / 1e3,
             [&, threads, of_links] {
               return seconds_of([&] {
                 const auto found = problem.by_layers(Cpu{threads});
                 if (of_links) benchmark::DoNotOptimize(problem.score_all(Cpu{threads}, found));
               });
             },
             [=] { return all / 1e3 / naive.seconds(Cpu{threads}); }, wrong, threads, "1000/s"});
    }
  return compare(argc, argv,
                 fmt::format("Rows of all vertices and scores of links, {} vertices, {} links, against the "
                             "naive way{}",
                             problem.vertices(), problem.links(), computed),
                 "1000/s", comparisons);
}
