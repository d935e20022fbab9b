// What a plan expects where it does not draw: an estimate from degrees agrees with the count where
// degrees are all there is to know.
#include "espalier/sample/counted_work.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "../../src/sample/expected_work.hpp"
#include "espalier/base/philox.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

// Every vertex hears kDegree others and is heard by as many, at shifts that were drawn once.
TEST(CountedWork, AnEstimateFromDegreesAgreesWithTheCountOnARegularGraph) {
  constexpr std::int64_t kVertices = 4000, kDegree = 12;
  const RandomStream stream = {.seed = test_seed(7)};
  std::set<std::int64_t> shifts;
  for (std::uint64_t k = 0; std::ssize(shifts) < kDegree; ++k)
    shifts.insert(static_cast<std::int64_t>(random_below(stream, k, kVertices)));
  Csr<std::int32_t> whole;
  whole.rows = whole.columns = kVertices;
  std::vector<std::int64_t> training;
  for (std::int64_t v = 0; v < kVertices; ++v) {
    std::vector<std::int32_t> columns;
    for (const auto shift : shifts) columns.push_back(static_cast<std::int32_t>((v + shift) % kVertices));
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
  job.batch_size = 50;
  job.batches_per_step = 8;
  job.bulk = 16;
  job.shape = {.fanout = {5, 3}, .batch_size = 50, .batches_per_rank = 2};
  const auto counted =
      count_epoch(Cpu{1}, a, job, VertexSource(TrainingVertices{.vertices = training}), 1000);
  const auto estimated =
      estimate_epoch({{.degree = kDegree, .vertices = kVertices}}, 0, job, std::ssize(training));
  EXPECT_EQ(counted.batches, 40);
  EXPECT_EQ(counted.drawn, 40);
  EXPECT_EQ(estimated.drawn, 0);
  EXPECT_NEAR(estimated.input_rows / counted.input_rows, 1, 0.04);
  EXPECT_NEAR(estimated.sampled_edges / counted.sampled_edges, 1, 0.04);
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

// Where each relation has a fanout, each gives at most that, and at most its share of the support.
TEST(ExpectedWork, PicksOfALayerAreThoseOfItsRelations) {
  const RowClasses rows = {.classes = {{.rows = 1000, .degree = 8, .picks = {0}}},
                           .of_relations = {6000, 2000}};
  for (const auto& [first, second, picks] :
       {std::array{100.0, 50.0, 150.0}, {100.0, 900.0, 350.0}, {-1.0, 10.0, 760.0}, {0.0, -1.0, 250.0}}) {
    const SamplerShape shape = {
        .fanout = {0},
        .relation_fanout = {{static_cast<std::int64_t>(first), static_cast<std::int64_t>(second)}},
        .batch_size = 10};
    const auto work = expected_layers(rows, sampler_kind_of("fastgcn"), shape, 4, 3).work[0];
    EXPECT_NEAR(work.picks, 3 * picks, 1e-6 * picks);
    EXPECT_NEAR(work.results / work.row_entries, picks / 1000, 1e-6)
        << "a pick keeps its share of the entries";
  }
}

// Classes of degrees keep sums over rows exactly, and tell degrees apart that differ by a quarter.
TEST(ExpectedWork, ClassesOfRowsKeepTheirSums) {
  DegreeHistogram degrees;
  double rows = 0, entries = 0, picks = 0;
  for (std::int64_t degree = 0; degree < (std::int64_t{1} << 40); degree = degree * 3 / 2 + 1) {
    degrees.push_back({degree, 7 + degree % 5});
    rows += static_cast<double>(7 + degree % 5);
    entries += static_cast<double>(degree * (7 + degree % 5));
    picks += static_cast<double>(std::min<std::int64_t>(degree, 9) * (7 + degree % 5));
  }
  const auto classes = row_classes(degrees, std::vector<std::int64_t>{9, -1});
  EXPECT_EQ(classes.classes.size(), degrees.size());
  EXPECT_DOUBLE_EQ(classes.rows(), rows);
  EXPECT_DOUBLE_EQ(classes.entries(), entries);
  double sum = 0, all = 0;
  for (const auto& of : classes.classes) sum += of.rows * of.picks[0], all += of.rows * of.picks[1];
  EXPECT_DOUBLE_EQ(sum, picks);
  EXPECT_DOUBLE_EQ(all, entries);
}

}  // namespace
}  // namespace espalier
