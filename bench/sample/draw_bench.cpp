// Draws alone: s of d neighbours, uniformly and without replacement, against random 4-byte gathers.
//
//     draw_bench [--scale N]      a symmetrised R-MAT of 2^N vertices (rmat.hpp; default 20:
//                                 125 MB of ids)
//
// kRows random vertices draw with fanout 5, 10 and 15; the ids of their picks are read.
//
// Derivation: a drawn edge reads one neighbour id at a place that nothing predicts, 4 bytes, so
//
//     bound = gathers per second      from an array of that size, the ids themselves,
//                                     measured beside
//
// The ratio falls where random words and the search for duplicates cost more than the gathers let
// them hide; it exceeds 1 where picks of one row share a cache line, or a row is taken whole.
//
// Verification: picks are those of draw_uniform, which draws one after another; the mean place of a
// pick in its row, of those that draw, is within five standard deviations of 1/2; so for every
// thread count.
#include <cmath>

#include "rates.hpp"
#include "rmat.hpp"
#include "uniform_draws.hpp"

namespace espalier::bench {
namespace {

constexpr std::int64_t kRows = 1 << 18;

// A place k of 0 .. d-1 counts as (k + 1/2) / d: mean 1/2, variance at most 1/12, and less by
// drawing without replacement.
bool is_central(const Csr<std::int32_t>& a, const DrawnRows& drawn) {
  double sum = 0, picks = 0;
  for (std::size_t r = 0; r < drawn.vertices.size(); ++r) {
    const auto neighbours = a.row_indices(drawn.vertices[r]);
    if (std::ssize(neighbours) <= drawn.fanout) continue;
    for (auto k = drawn.begin[r]; k < drawn.begin[r + 1]; ++k, ++picks) {
      const auto at =
          std::lower_bound(neighbours.begin(), neighbours.end(), drawn.picks[static_cast<std::size_t>(k)]);
      sum += (static_cast<double>(at - neighbours.begin()) + 0.5) / static_cast<double>(neighbours.size());
    }
  }
  return picks > 0 && std::abs(sum / picks - 0.5) < 5 / std::sqrt(12 * picks);
}

}  // namespace
}  // namespace espalier::bench

int main(int argc, char** argv) {
  using namespace espalier;
  using namespace espalier::bench;
  const auto a = make_rmat(take_scale(argc, argv, 20));
  const FirstBatches rows(a, kRows, 1);
  std::vector<Comparison> comparisons;
  for (const std::int64_t fanout : {5, 10, 15}) {
    const RandomStream stream = {.seed = kSeed, .purpose = Purpose::kSample, .epoch = 1, .layer = 1};
    const auto drawn = std::make_shared<DrawnRows>(a, fanout, stream, rows.all().front().seeds());
    for (const int threads : thread_counts()) {
      const auto draw = [&a, drawn, threads] {
        constexpr std::int64_t kAtOnce = 4096;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
        for (std::int64_t first = 0; first < drawn->rows(); first += kAtOnce)
          draw_rows(a, *drawn, first, std::min(drawn->rows(), first + kAtOnce));
      };
      std::ranges::fill(drawn->picks, -1);
      draw();
      const auto wrong = count_wrong(a, *drawn) + !is_central(a, *drawn);
      comparisons.push_back({fmt::format("fanout {:<2} {} thr", fanout, threads),
                             1e-9 * static_cast<double>(drawn->begin.back()),
                             [draw] { return seconds_of(draw); },
                             [&a, threads] { return gather_rate(threads, a.indices); }, wrong, threads});
    }
  }
  const auto title =
      fmt::format("Uniform draws, {} rows of {} vertices, {} edges ({} MB); bound: gathers from those",
                  rows.all().front().seeds().size(), a.rows, a.entries(), a.entries() * 4 / 1000000);
  return compare(argc, argv, title, "Gedge/s", comparisons);
}
