// Sampling with GraphSAGE, fanout 15,10,5 and 1024 seeds per batch, on a symmetrised R-MAT, against the
// rate of random 4-byte gathers.
//
//     graphsage_bench [--scale N]      2^N vertices, 16 2^N undirected edges drawn (default 18)
//
// The graph is that of `espalier generate rmat --scale N --symmetrize --drop-self-loops`, made in memory.
// Seeds are drawn among the vertices that have a neighbour; kBatches batches are sampled in bulk.
//
// Derivation: whatever else it does, a sampled edge needs two accesses to places that nothing predicts, 4
// bytes or more each: the neighbour id in the adjacency matrix (position random within its row, rows random),
// and the slot of the neighbour in the table of the batch's vertices, which gives it its local id. So
//
//     bound = gathers per second / 2       with gathers from an array of the size of the adjacency's own
//                                          indices, measured beside, by the same number of threads
//
// At scale 18 these are 30 MB and a large cache may hold them; the line above the table shows what gathers
// from 1 GiB do, and --scale 22 leaves any cache. The design asks for a ratio of at least 0.5.
//
// Verification, on the minibatches of every thread count: a row has min(fanout, degree) picks (else all of
// the row counts as wrong), its picks are distinct, and each is a neighbour; every digest is that of 1
// thread.
#include <thread>

#include "espalier/comm/session.hpp"
#include "espalier/graph/edge_list.hpp"
#include "espalier/graph/generate.hpp"
#include "espalier/sample/epoch_plan.hpp"
#include "espalier/sample/sampler.hpp"
#include "rates.hpp"

namespace espalier::bench {
namespace {

constexpr std::int64_t kBatchSize = 1024, kBatches = 8, kEdgeFactor = 16;
constexpr std::uint64_t kSeed = 0;
const std::vector<std::int64_t> kFanout = {15, 10, 5};

Csr<std::int32_t> make_rmat(std::int64_t scale) {
  const auto n = std::int64_t{1} << scale, edges = n * kEdgeFactor;
  const Scramble scramble(n, {.seed = kSeed, .purpose = Purpose::kGenerateEdges, .layer = 1});
  EdgeList<std::int32_t> list;
  list.sources.resize(static_cast<std::size_t>(edges));
  list.targets.resize(static_cast<std::size_t>(edges));
#pragma omp parallel for schedule(static)
  for (std::int64_t e = 0; e < edges; ++e) {
    const Edge edge = rmat_edge(kSeed, e, scale);
    list.sources[static_cast<std::size_t>(e)] = static_cast<std::int32_t>(scramble(edge.source));
    list.targets[static_cast<std::size_t>(e)] = static_cast<std::int32_t>(scramble(edge.target));
  }
  EdgeCounts counts;
  return build_rows(list, {0, n}, n, {.symmetrize = true, .drop_self_loops = true}, counts);
}

std::vector<std::int64_t> vertices_with_neighbours(const Csr<std::int32_t>& a) {
  std::vector<std::int64_t> vertices;
  for (std::int64_t v = 0; v < a.rows; ++v)
    if (a.row_size(v) > 0) vertices.push_back(v);
  return vertices;
}

std::int64_t count_wrong(const Csr<std::int32_t>& a, const Minibatch& minibatch) {
  std::int64_t wrong = 0;
  std::vector<std::int64_t> picks;
  for (std::size_t l = 0; l < kFanout.size(); ++l) {
    const Block& block = minibatch.blocks[kFanout.size() - 1 - l];
    for (std::int64_t r = 0; r < block.rows; ++r) {
      const auto neighbours = a.row_indices(minibatch.vertices[static_cast<std::size_t>(r)]);
      picks.clear();
      for (const auto column : block.row_indices(r))
        picks.push_back(minibatch.vertices[static_cast<std::size_t>(column)]);
      if (std::ssize(picks) != std::min(kFanout[l], std::ssize(neighbours))) wrong += std::ssize(picks) + 1;
      std::sort(picks.begin(), picks.end());
      wrong += picks.end() - std::unique(picks.begin(), picks.end());
      for (const auto pick : picks) wrong += !std::binary_search(neighbours.begin(), neighbours.end(), pick);
    }
  }
  return wrong;
}

std::int64_t take_scale(int& argc, char** argv) {
  for (int i = 1; i + 1 < argc; ++i)
    if (std::string(argv[i]) == "--scale") {
      const auto scale = std::stoll(argv[i + 1]);
      std::copy(argv + i + 2, argv + argc + 1, argv + i);  // the closing null too
      argc -= 2;
      return scale;
    }
  return 18;
}

}  // namespace
}  // namespace espalier::bench

int main(int argc, char** argv) {
  using namespace espalier;
  using namespace espalier::bench;
  const auto scale = take_scale(argc, argv);
  const Session session(&argc, &argv);
  const Grid grid(session.world(), 1);
  const auto a = distribute(grid, make_rmat(scale), Topology::kReplicated);
  const auto sampler = make_sampler("graphsage", a, {.fanout = kFanout});
  const EpochPlan plan(vertices_with_neighbours(a.local), kBatchSize, 1, 1, kSeed, 1);
  std::vector<SeedBatch> batches;
  for (std::int64_t b = 0; b < std::min(kBatches, plan.batches()); ++b) batches.push_back({b, plan.seeds(b)});

  std::vector<Comparison> comparisons;
  std::vector<std::uint64_t> digests;
  std::string far_gathers;
  for (const int threads : {1, 2}) {
    if (threads > static_cast<int>(std::thread::hardware_concurrency())) continue;
    std::int64_t edges = 0, wrong = 0;
    std::uint64_t digest = 0;
    for (const auto& minibatch : sampler->sample(Cpu{threads}, batches, kSeed, 1)) {
      edges += minibatch.sampled_edges();
      wrong += count_wrong(a.local, minibatch);
      digest += sample_digest(minibatch);
    }
    digests.push_back(digest);
    if (digest != digests.front()) wrong = std::max<std::int64_t>(wrong, 1);
    comparisons.push_back(
        {fmt::format("15,10,5 batch {} scale {} {} thr", kBatchSize, scale, threads),
         1e-9 * static_cast<double>(edges),
         [&, threads] { return seconds_of([&] { sampler->sample(Cpu{threads}, batches, kSeed, 1); }); },
         [&, threads] { return gather_rate(threads, a.local.indices) / 2; }, wrong});
    const Buffer<std::int32_t> gibibyte(std::size_t{1} << 28, 1);
    far_gathers += fmt::format("{}{:.3f}", threads > 1 ? ", " : "", gather_rate(threads, gibibyte) / 2);
  }
  const auto title = fmt::format(
      "GraphSAGE sampling, {} vertices, {} edges ({} MB); bound: gathers from those / 2"
      "\n# (gathers from 1 GiB / 2: {} G/s by 1, 2 threads)",
      a.rows(), a.local.entries(), a.local.entries() * 4 / 1000000, far_gathers);
  return compare(argc, argv, title, "Gedge/s", comparisons);
}
