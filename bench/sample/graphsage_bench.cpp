// Sampling with GraphSAGE, fanout 15,10,5 and 1024 seeds per batch, on a symmetrised R-MAT, against
// the rate of random 4-byte gathers; and its two parts, draws and extraction.
//
//     graphsage_bench [--scale N]      2^N vertices, 16 2^N undirected edges drawn
//                                      (rmat.hpp; default 20)
//
// Seeds are drawn among the vertices that have a neighbour; kBatches batches are sampled in bulk.
//
// Derivation: whatever else it does, a sampled edge needs two accesses to places that nothing
// predicts, 4 bytes or more each: the neighbour id in the adjacency matrix (position random within
// its row, rows random), and the slot of the neighbour in the table of the batch's vertices, which
// gives it its local id. So
//
//     bound = gathers per second / 2       with gathers from an array of the size of the
//                                          adjacency's own indices, measured beside, by the same
//                                          number of threads
//
// At scale 20 these are 125 MB; the line above the table shows what gathers from 1 GiB do, and
// --scale 22 leaves any cache. The design asks for a ratio of at least 0.5. The two parts have one
// of the two accesses each, and gathers as their bound: the draws of the same rows
// (uniform_draws.hpp), and the local ids of what they drew (sample/local_ids.hpp). Ids may pass it:
// their table is one bit for each vertex of the graph, which a cache may hold.
//
// Verification, on the minibatches of every thread count: a row has min(fanout, degree) picks (else
// all of the row counts as wrong), its picks are distinct, and each is a neighbour; every digest is
// that of 1 thread. The draws alone are those of draw_uniform; they and their local ids are what
// stands in the minibatches.
#include <omp.h>

#include "espalier/comm/session.hpp"
#include "espalier/sample/local_ids.hpp"
#include "rates.hpp"
#include "rmat.hpp"
#include "uniform_draws.hpp"

namespace espalier::bench {
namespace {

constexpr std::int64_t kBatchSize = 1024, kBatches = 8;
const std::vector<std::int64_t> kFanout = {15, 10, 5};

std::int64_t count_wrong(const Csr<std::int32_t>& a, const Minibatch& minibatch) {
  std::int64_t wrong = 0;
  std::vector<std::int64_t> picks;
  for (std::size_t l = 0; l < kFanout.size(); ++l) {
    const auto& block = minibatch.blocks[kFanout.size() - 1 - l];
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

// The two parts of one batch's sampling, by themselves: draws of the rows that the minibatch says,
// local ids of what they drew.
class Parts {
 public:
  Parts(const Csr<std::int32_t>& a, const Minibatch& minibatch) : a_(a) {
    for (auto layer = kFanout.size(); layer >= 1; --layer) {
      const RandomStream stream = {.seed = kSeed,
                                   .purpose = Purpose::kSample,
                                   .epoch = 1,
                                   .batch = static_cast<std::uint64_t>(minibatch.number),
                                   .layer = layer};
      layers_.emplace_back(
          a, kFanout[kFanout.size() - layer], stream,
          minibatch.vertices.first(static_cast<std::size_t>(minibatch.blocks[layer - 1].rows)));
      local_.emplace_back(layers_.back().picks.size());
    }
  }
  void draw() {
    for (auto& rows : layers_) draw_rows(a_, rows, 0, rows.rows());
  }
  void give_local_ids(LocalIds& ids) {
    const auto& seeds = layers_.front().vertices;
    vertices_.assign(seeds.begin(), seeds.end());
    for (std::size_t k = 0; k < layers_.size(); ++k)
      ids.extend(Cpu{1}, std::span<const std::int32_t>(layers_[k].picks), vertices_, local_[k].data());
  }
  std::int64_t count_wrong_draws() const {
    std::int64_t wrong = 0;
    for (const auto& rows : layers_) wrong += bench::count_wrong(a_, rows);
    return wrong;
  }
  std::int64_t count_wrong_ids(const Minibatch& minibatch) const {
    std::int64_t wrong = !std::ranges::equal(vertices_, minibatch.vertices);
    for (std::size_t k = 0; k < layers_.size(); ++k)
      wrong += local_[k] != copy_of(minibatch.blocks[layers_.size() - 1 - k]).indices;
    return wrong;
  }

 private:
  const Csr<std::int32_t>& a_;
  std::vector<DrawnRows> layers_;  // first: next to the batch
  std::vector<Buffer<std::int32_t>> local_;
  Buffer<std::int64_t> vertices_;
};

double far_gathers(int threads) {
  const Buffer<std::int32_t> gibibyte(std::size_t{1} << 28, 1);
  return gather_rate(threads, gibibyte) / 2;
}

}  // namespace
}  // namespace espalier::bench

int main(int argc, char** argv) {
  using namespace espalier;
  using namespace espalier::bench;
  const auto scale = take_scale(argc, argv, 20);
  const Session session(&argc, &argv);
  const Grid grid(session.world(), 1);
  const auto a = distribute(grid, make_rmat(scale), Topology::kReplicated);
  const auto sampler = make_sampler("graphsage", a, {.fanout = kFanout});
  const FirstBatches batches(a.local, kBatchSize, kBatches);

  std::vector<Comparison> comparisons;
  std::vector<Parts> parts;
  std::vector<LocalIds> ids(thread_counts().size(), LocalIds(a.rows()));
  std::uint64_t first_digest = 0;
  std::string far;
  for (const int threads : thread_counts()) {
    std::int64_t edges = 0, wrong = 0;
    std::uint64_t digest = 0;
    const auto minibatches = sampler->sample(Cpu{threads}, batches.all(), kSeed, 1);
    for (const auto& minibatch : minibatches) {
      edges += minibatch.sampled_edges();
      wrong += count_wrong(a.local, minibatch);
      digest += sample_digest(minibatch);
    }
    if (threads == 1) {
      first_digest = digest;
      for (const auto& minibatch : minibatches) parts.emplace_back(a.local, minibatch);
    }
    wrong += digest != first_digest;
    const auto sample = [&, threads] { sampler->sample(Cpu{threads}, batches.all(), kSeed, 1); };
    const auto draw = [&, threads] {
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
      for (auto& one : parts) one.draw();
    };
    const auto give_local_ids = [&, threads] {
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
      for (auto& one : parts) one.give_local_ids(ids[static_cast<std::size_t>(omp_get_thread_num())]);
    };
    draw(), give_local_ids();
    std::int64_t wrong_draws = 0, wrong_ids = 0;
    for (std::size_t b = 0; b < parts.size(); ++b) {
      wrong_draws += parts[b].count_wrong_draws();
      wrong_ids += parts[b].count_wrong_ids(minibatches[b]);
    }
    const auto add = [&](const char* name, auto work, double gathers, std::int64_t wrong_elements) {
      comparisons.push_back(
          {fmt::format("{} {} thr", name, threads), 1e-9 * static_cast<double>(edges),
           [work] { return seconds_of(work); },
           [&a, threads, gathers] { return gather_rate(threads, a.local.indices) / gathers; }, wrong_elements,
           threads});
    };
    add("sample 15,10,5", sample, 2, wrong);
    add("  its draws", draw, 1, wrong_draws);
    add("  its local ids", give_local_ids, 1, wrong_ids);
    far += fmt::format("{}{:.3f}", threads > 1 ? ", " : "", far_gathers(threads));
  }
  const auto title = fmt::format(
      "GraphSAGE sampling, batches of {}, R-MAT scale {}: {} vertices, {} edges ({} MB); bound: gathers from "
      "those / 2"
      "\n# (gathers from 1 GiB / 2: {} G/s by 1, 2 threads)",
      kBatchSize, scale, a.rows(), a.local.entries(), a.local.entries() * 4 / 1000000, far);
  return compare(argc, argv, title, "Gedge/s", comparisons);
}
