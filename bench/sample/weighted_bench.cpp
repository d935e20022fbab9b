// Draws by weight, GraphSAGE 15,10,5, on a symmetrised R-MAT whose edges weigh from 2^-4 to 2^4: by
// inverse transform sampling and by an exponential race, per entry scanned.
//
//     weighted_bench [--scale N]      2^N vertices, 16 2^N undirected edges drawn
//                                     (rmat.hpp; default 18)
//
// kBatches batches of 1024, means. D: the entries of all rows of all frontiers, counted from the
// minibatches; each is scanned, whoever is drawn.
//
// Derivation: its reads of an entry the weight, 4 bytes, a race also the neighbour, whose word it
// draws: 4 D and 8 D bytes at the copy rate. The bound leaves out arithmetic: an integer weight for
// each entry, its sums, and of a race ten Philox rounds (random_words: those alone, of D entries).
//
// Verification: a row has min(fanout, degree) picks, distinct neighbours, whose shares sum to 1;
// the digest is that of 1 thread.
#include <cmath>

#include "espalier/comm/session.hpp"
#include "espalier/sample/draw_race.hpp"
#include "rates.hpp"
#include "rmat.hpp"

namespace espalier::bench {
namespace {

constexpr std::int64_t kBatchSize = 1024, kBatches = 8;
const std::vector<std::int64_t> kFanout = {15, 10, 5};

DistCsr<std::int32_t> weighted_rmat(const Grid& grid, std::int64_t scale) {
  auto a = make_rmat(scale);
  a.values.resize(a.indices.size());
  for (std::size_t k = 0; k < a.values.size(); ++k)
    a.values[k] = static_cast<float>(std::exp2(8 * to_unit_double(random64({.row = k}, 0)) - 4));
  a.weighted = true;
  return distribute(grid, a, Topology::kReplicated);
}

struct Checked {
  std::int64_t scanned = 0, wrong = 0;
  std::uint64_t digest = 0;

  void add(const Csr<std::int32_t>& a, const Minibatch& minibatch) {
    digest += sample_digest(minibatch);
    for (std::size_t l = 0; l < kFanout.size(); ++l) {
      const auto& block = minibatch.blocks[l];
      for (std::int64_t r = 0; r < block.rows; ++r)
        add_row(a.row_indices(minibatch.vertices[static_cast<std::size_t>(r)]), minibatch, block, r,
                kFanout[kFanout.size() - 1 - l]);
    }
  }

 private:
  void add_row(std::span<const std::int32_t> neighbours, const Minibatch& minibatch, const BlockView<>& block,
               std::int64_t r, std::int64_t fanout) {
    scanned += std::ssize(neighbours);
    double sum = 0;
    std::vector<std::int64_t> picks;
    for (auto e = block.row_begin(r); e < block.row_end(r); ++e) {
      picks.push_back(minibatch.vertices[static_cast<std::size_t>(block.indices[e])]);
      sum += static_cast<double>(block.values[e]);
    }
    std::ranges::sort(picks);
    wrong += std::ssize(picks) != std::min(fanout, std::ssize(neighbours));
    wrong += picks.end() - std::unique(picks.begin(), picks.end());
    for (const auto pick : picks) wrong += !std::ranges::binary_search(neighbours, pick);
    wrong += !picks.empty() && std::abs(sum - 1) > 1e-5;
  }
};

// The words of the first `count` entries of A, those of 1024 together as one row's.
std::uint64_t draw_words(const Csr<std::int32_t>& a, std::int64_t count, int threads) {
  std::uint64_t sum = 0;
#pragma omp parallel for num_threads(threads) reduction(+ : sum)
  for (std::int64_t row = 0; row < count / 1024; ++row) {
    RaceWords of_row(RandomStream{.row = static_cast<std::uint64_t>(row)});
    for (std::int64_t k = 0; k < 1024; k += kBlocksAtOnce) {
      std::uint64_t words[kBlocksAtOnce];
      of_row.draw(a.indices.data() + 1024 * row + k, kBlocksAtOnce, words);
      for (const auto word : words) sum += word;
    }
  }
  return sum;
}

}  // namespace
}  // namespace espalier::bench

int main(int argc, char** argv) {
  using namespace espalier;
  using namespace espalier::bench;
  const auto scale = take_scale(argc, argv, 18);
  const Session session(&argc, &argv);
  const Grid grid(session.world(), 1);
  const auto a = weighted_rmat(grid, scale);
  const FirstBatches batches(a.local, kBatchSize, kBatches);

  std::vector<Comparison> comparisons;
  for (const char* law : {"its", "race"}) {
    const std::shared_ptr<Sampler> sampler =
        make_sampler("graphsage", a, {.fanout = kFanout, .weighted = true, .draw = draw_law_of(law)});
    const double bytes = law == std::string("its") ? 4 : 8;
    std::uint64_t first_digest = 0;
    for (const int threads : thread_counts()) {
      Checked checked;
      for (const auto& minibatch : sampler->sample(Cpu{threads}, batches.all(), kSeed, 1))
        checked.add(a.local, minibatch);
      if (threads == 1) first_digest = checked.digest;
      comparisons.push_back(
          {fmt::format("{} {} thr", law, threads), 1e-9 * static_cast<double>(checked.scanned),
           [&, sampler, threads] {
             return seconds_of([&] { sampler->sample(Cpu{threads}, batches.all(), kSeed, 1); });
           },
           [threads, bytes] { return copy_rate(threads) / bytes; },
           checked.wrong + (checked.digest != first_digest), threads});
    }
  }
  const auto entries = a.local.entries();
  for (const int threads : thread_counts())
    comparisons.push_back(
        {fmt::format("random_words {} thr", threads), 1e-9 * static_cast<double>(entries),
         [&, threads] { return seconds_of([&] { draw_words(a.local, entries, threads); }); },
         [threads] { return copy_rate(threads) / 4; },
         draw_words(a.local, entries, 1) != draw_words(a.local, entries, threads), threads});
  const auto title = fmt::format(
      "Draws by weight, 15,10,5, batches of {}, R-MAT scale {}, {} edges; bound: reading the entries scanned",
      kBatchSize, scale, entries);
  return compare(argc, argv, title, "Gentry/s", comparisons);
}
