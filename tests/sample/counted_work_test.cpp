// What a plan expects where it does not draw: an estimate from degrees agrees with the count where degrees are all there
// is to know.
#include "espalier/sample/counted_work.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "espalier/base/philox.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

// Every vertex has kDegree random neighbours: what is counted is what degrees say.
TEST(CountedWork, AnEstimateFromDegreesAgreesWithTheCountOnARegularGraph) {
  constexpr std::int64_t kVertices = 4000, kDegree = 12;
  Csr<std::int32_t> whole;
  whole.rows = whole.columns = kVertices;
  std::vector<std::int64_t> training;
  for (std::int64_t v = 0; v < kVertices; ++v) {
    std::vector<std::int32_t> columns;
    const RandomStream stream = {.seed = test_seed(7), .row = static_cast<std::uint64_t>(v)};
    for (std::uint64_t k = 0; std::ssize(columns) < kDegree; ++k) {
      const auto u = static_cast<std::int32_t>(random_below(stream, k, kVertices));
      if (std::find(columns.begin(), columns.end(), u) == columns.end()) columns.push_back(u);
    }
    std::sort(columns.begin(), columns.end());
    whole.indices.insert(whole.indices.end(), columns.begin(), columns.end());
    whole.indptr.push_back(std::ssize(whole.indices));
    if (v % 2 == 0) training.push_back(v);
  }
  const Grid grid(test_world(), 1);
  const auto a = distribute(grid, whole, Topology::kReplicated);
  PlannedEpoch job;
  job.ranks = 8;
  job.replication = 2;
  job.batches_per_step = 8;
  job.bulk = 16;
  job.shape = {.fanout = {5, 3}, .batch_size = 50, .batches_per_rank = 2};
  const auto counted = count_epoch(Cpu{1}, a, job, training, 1000);
  const auto estimated =
      estimate_epoch(std::vector<std::int64_t>(kVertices, kDegree), 0, job, std::ssize(training));
  EXPECT_EQ(counted.batches, 40);
  EXPECT_EQ(counted.drawn, 40);
  EXPECT_EQ(estimated.drawn, 0);
  // The picks of a row are distinct: the estimate takes them for independent draws.
  EXPECT_NEAR(estimated.input_rows / counted.input_rows, 1, 0.03);
  EXPECT_NEAR(estimated.sampled_edges / counted.sampled_edges, 1, 0.03);
  for (std::size_t s = 0; s < kMovingSchedules.size(); ++s)
    for (std::size_t k = 0; k < 2; ++k) {
      Cost of_count, of_estimate;
      for (int rank = 0; rank < job.ranks; ++rank) {
        of_count.bytes += counted.products[s][k][static_cast<std::size_t>(rank)].bytes;
        of_estimate.bytes += estimated.products[s][k][static_cast<std::size_t>(rank)].bytes;
      }
      EXPECT_GT(of_count.bytes, 0);
      EXPECT_NEAR(of_estimate.bytes / of_count.bytes, 1, 0.05)
          << name_of(kMovingSchedules[s]) << " layer " << k;
    }
}

}  // namespace
}  // namespace espalier
