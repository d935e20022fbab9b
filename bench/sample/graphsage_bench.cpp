// Sampling with GraphSAGE, fanout 15,10,5 and 1024 seeds per batch, on a symmetrised R-MAT, against the
// rate of random 4-byte gathers; and its two parts, draws and extraction.
//
//     graphsage_bench [--scale N]      2^N vertices, 16 2^N undirected edges drawn (rmat.hpp; default 20)
//
// Seeds are drawn among the vertices that have a neighbour; kBatches batches are sampled in bulk.
//
// Derivation: whatever else it does, a sampled edge needs two accesses to places that nothing predicts, 4
// bytes or more each: the neighbour id in the adjacency matrix (position random within its row, rows random),
// and the slot of the neighbour in the table of the batch's vertices, which gives it its local id. So
//
//     bound = gathers per second / 2       with gathers from an array of the size of the adjacency's own
//                                          indices, measured beside, by the same number of threads
//
// At scale 20 these are 125 MB; the line above the table shows what gathers from 1 GiB do, and --scale 22
// leaves any cache. The design asks for a ratio of at least 0.5. Draws (uniform_draws.hpp, of the same rows) and
// extraction have one of the two accesses each: their bound is gathers / 1. The seconds of the extraction are a
// difference, those of sampling less those of the draws, so it carries the noise of both, and all that is
// neither.
//
// Verification, on the minibatches of every thread count: a row has min(fanout, degree) picks (else all of
// the row counts as wrong), its picks are distinct, and each is a neighbour; every digest is that of 1
// thread. Picks of the draws alone ascend and are neighbours.
#include "espalier/comm/session.hpp"
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

// The rows that drew for these minibatches, batch by batch and layer by layer.
std::vector<DrawnRows> rows_of(const Csr<std::int32_t>& a, const std::vector<Minibatch>& minibatches) {
  std::vector<DrawnRows> all;
  for (const auto& minibatch : minibatches)
    for (auto layer = kFanout.size(); layer >= 1; --layer) {
      const auto rows = static_cast<std::size_t>(minibatch.blocks[layer - 1].rows);
      all.emplace_back(a, kFanout[kFanout.size() - layer],
                       RandomStream{.seed = kSeed,
                                    .purpose = Purpose::kSample,
                                    .epoch = 1,
                                    .batch = static_cast<std::uint64_t>(minibatch.number),
                                    .layer = layer},
                       std::span(minibatch.vertices).first(rows));
    }
  return all;
}

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
  std::vector<DrawnRows> rows;
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
      rows = rows_of(a.local, minibatches);
    }
    wrong += digest != first_digest;
    const auto sample = [&, threads] {
      return seconds_of([&] { sampler->sample(Cpu{threads}, batches.all(), kSeed, 1); });
    };
    const auto draw = [&, threads] {
      return seconds_of([&] {
        for (auto& drawn : rows) draw_rows(Cpu{threads}, a.local, drawn);
      });
    };
    draw();
    std::int64_t wrong_draws = 0;
    for (const auto& drawn : rows) wrong_draws += count_wrong(a.local, drawn);
    const auto gathers = [&, threads] { return gather_rate(threads, a.local.indices); };
    const auto half = [gathers] { return gathers() / 2; };
    const double amount = 1e-9 * static_cast<double>(edges);
    const auto name = [threads](const char* part) { return fmt::format("{} {} thr", part, threads); };
    comparisons.push_back({name("sample 15,10,5"), amount, sample, half, wrong, threads});
    comparisons.push_back({name("  its draws"), amount, draw, gathers, wrong_draws, threads});
    const auto extract = [sample, draw] { return std::max(sample() - draw(), 1e-9); };
    comparisons.push_back({name("  its extraction (difference)"), amount, extract, gathers, wrong, threads});
    far += fmt::format("{}{:.3f}", threads > 1 ? ", " : "", far_gathers(threads));
  }
  const auto title = fmt::format(
      "GraphSAGE sampling, batches of {}, R-MAT scale {}: {} vertices, {} edges ({} MB); bound: gathers from "
      "those / 2"
      "\n# (gathers from 1 GiB / 2: {} G/s by 1, 2 threads)",
      kBatchSize, scale, a.rows(), a.local.entries(), a.local.entries() * 4 / 1000000, far);
  return compare(argc, argv, title, "Gedge/s", comparisons);
}
