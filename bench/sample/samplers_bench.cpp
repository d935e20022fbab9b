// LABOR, LADIES and FastGCN on a symmetrised R-MAT, against what reading their frontiers'
// rows takes.
//
//     samplers_bench [--scale N]      2^N vertices, 16 2^N undirected edges drawn
//                                     (rmat.hpp; default 20)
//
// Three layers; LABOR with fanout 15,10,5, the layer-wise ones with 512 vertices per layer,
// debiased, on the matrix with rows of sum 1. kBatches batches of 1024 in bulk.
//
// Derivation, with D the entries of all rows of all frontiers, counted from the minibatches, and W
// those of the widest frontier of each, which the others begin:
//
//     LABOR     decides about every neighbour of every row, so it reads D ids; and a sampled edge
//               looks up the slot that gives its vertex a local id:
//               4 D bytes at the copy rate + edges / gathers
//     LADIES    the distribution is a sum over the entries of a frontier, whose rows count the same
//               each, and a frontier's sum is that of the one it begins with and of its new rows:
//               each of W ids is read and adds to a sum once. Which columns are picked is known
//               only then, so all ids are looked at again:
//               4 W + 4 D bytes at the copy rate + W / additions within the first cache
//     FastGCN   its picks are known before; ids are looked at once: 4 D bytes at the copy rate
//
// The bound is the rate of sampled edges at which this would take all of the time. It leaves out
// other arithmetic: a random number per neighbour (LABOR), listing the sums and the draws from them
// (LADIES), and the comparisons with the picks. FastGCN may pass its bound: a row far longer than
// the list of picks is searched instead of read.
//
// Verification: every entry is an edge; a row of LABOR with at most s neighbours has them all;
// layer-wise, a row has every new vertex of the layer that is its neighbour, and at most 512
// vertices are new; digests are that of 1 thread.
#include "espalier/comm/session.hpp"
#include "rates.hpp"
#include "rmat.hpp"

namespace espalier::bench {
namespace {

constexpr std::int64_t kBatchSize = 1024, kBatches = 8;
const std::vector<std::int64_t> kNodeWise = {15, 10, 5}, kLayerWise = {512, 512, 512};

struct Case {
  const char* name;
  const std::vector<std::int64_t>& fanout;
  double gathers_per_edge;
  bool layer_wise;
  bool sums_rows;
};
const Case kCases[] = {{"labor", kNodeWise, 1, false, false},
                       {"ladies", kLayerWise, 0, true, true},
                       {"fastgcn", kLayerWise, 0, true, false}};

struct EntriesRead {
  double all = 0;     // of each frontier
  double widest = 0;  // of each minibatch's widest
};

EntriesRead entries_read(const Csr<std::int32_t>& a, const std::vector<Minibatch>& minibatches) {
  EntriesRead entries;
  for (const auto& minibatch : minibatches) {
    double widest = 0;
    for (const auto& block : minibatch.blocks) {
      std::int64_t of_block = 0;
      for (std::int64_t r = 0; r < block.rows; ++r)
        of_block += a.row_size(minibatch.vertices[static_cast<std::size_t>(r)]);
      entries.all += static_cast<double>(of_block);
      widest = std::max(widest, static_cast<double>(of_block));
    }
    entries.widest += widest;
  }
  return entries;
}

// The picks of one row against its neighbours.
class RowCheck {
 public:
  RowCheck(const Csr<std::int32_t>& a, const Case& sampler, const Minibatch& minibatch, std::size_t layer)
      : a_(a), sampler_(sampler), minibatch_(minibatch), block_(minibatch.blocks[layer]) {
    fanout_ = sampler.fanout[minibatch.blocks.size() - 1 - layer];
    for (auto k = block_.rows; k < block_.columns; ++k)
      fresh_.push_back(minibatch.vertices[static_cast<std::size_t>(k)]);  // ascending
  }
  std::int64_t count_wrong() {
    std::int64_t wrong = sampler_.layer_wise && std::ssize(fresh_) > fanout_;
    for (std::int64_t r = 0; r < block_.rows; ++r) wrong += count_wrong(r);
    return wrong;
  }

 private:
  std::int64_t count_wrong(std::int64_t r) {
    const auto neighbours = a_.row_indices(minibatch_.vertices[static_cast<std::size_t>(r)]);
    std::vector<std::int64_t> picks;
    for (const auto column : block_.row_indices(r))
      picks.push_back(minibatch_.vertices[static_cast<std::size_t>(column)]);
    std::sort(picks.begin(), picks.end());
    std::int64_t wrong = picks.end() - std::unique(picks.begin(), picks.end());
    for (const auto pick : picks) wrong += !std::binary_search(neighbours.begin(), neighbours.end(), pick);
    if (!sampler_.layer_wise)
      return wrong + (std::ssize(neighbours) <= fanout_ && picks.size() != neighbours.size());
    for (const auto vertex : neighbours)
      if (std::binary_search(fresh_.begin(), fresh_.end(), vertex))
        wrong += !std::binary_search(picks.begin(), picks.end(), vertex);
    return wrong;
  }

  const Csr<std::int32_t>& a_;
  const Case& sampler_;
  const Minibatch& minibatch_;
  const BlockView<>& block_;
  std::int64_t fanout_ = 0;
  std::vector<std::int64_t> fresh_;
};

}  // namespace
}  // namespace espalier::bench

int main(int argc, char** argv) {
  using namespace espalier;
  using namespace espalier::bench;
  const auto scale = take_scale(argc, argv, 20);
  const Session session(&argc, &argv);
  const Grid grid(session.world(), 1);
  const auto a = distribute(grid, make_rmat(scale), Topology::kReplicated);
  const auto mean = normalize_rows(a, false, false);
  const FirstBatches batches(a.local, kBatchSize, kBatches);

  std::vector<Comparison> comparisons;
  for (const auto& one : kCases) {
    const std::shared_ptr<Sampler> sampler =
        make_sampler(one.name, one.layer_wise ? mean : a, {.fanout = one.fanout});
    std::uint64_t first_digest = 0;
    for (const int threads : thread_counts()) {
      std::int64_t edges = 0, wrong = 0;
      std::uint64_t digest = 0;
      const auto minibatches = sampler->sample(Cpu{threads}, batches.all(), kSeed, 1);
      for (const auto& minibatch : minibatches) {
        edges += minibatch.sampled_edges();
        for (std::size_t layer = 0; layer < minibatch.blocks.size(); ++layer)
          wrong += RowCheck(a.local, one, minibatch, layer).count_wrong();
        digest += sample_digest(minibatch);
      }
      if (threads == 1) first_digest = digest;
      wrong += digest != first_digest;
      const double amount = 1e-9 * static_cast<double>(edges);
      const auto entries = entries_read(a.local, minibatches);
      const double additions = one.sums_rows ? 1e-9 * entries.widest : 0;
      const double gigabytes = 4e-9 * entries.all + 4 * additions;
      const double gathers = amount * one.gathers_per_edge;
      comparisons.push_back(
          {fmt::format("{} {} {} thr", one.name, one.layer_wise ? "512,512,512" : "15,10,5", threads), amount,
           [&, sampler, threads] {
             return seconds_of([&] { sampler->sample(Cpu{threads}, batches.all(), kSeed, 1); });
           },
           [&, threads, amount, gigabytes, gathers, additions] {
             double seconds = gigabytes / copy_rate(threads);
             if (additions > 0) seconds += additions / add_rate(threads);
             if (gathers > 0) seconds += gathers / gather_rate(threads, a.local.indices);
             return amount / seconds;
           },
           wrong, threads});
    }
  }
  const auto title =
      fmt::format("Samplers, batches of {}, R-MAT scale {}, {} edges; bound: reading the frontiers' rows",
                  kBatchSize, scale, a.local.entries());
  return compare(argc, argv, title, "Gedge/s", comparisons);
}
