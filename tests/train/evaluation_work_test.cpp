// What evaluation fetches: counted by hand on a tiny graph, and an estimate that agrees with the
// count on a random one.
#include "espalier/train/evaluation_work.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "espalier/base/philox.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

TEST(EvaluationWork, CountedByHand) {
  // 0 <- 1 4 5, 1 <- 4, 2 <- 2, 3 <- 0 4 5, 4 <- 0, 5 <- 4
  Csr<std::int32_t> a;
  a.rows = a.columns = 6;
  a.indptr = {0, 3, 4, 5, 8, 9, 10};
  a.indices = {1, 4, 5, 4, 2, 0, 4, 5, 0, 4};
  // Blocks {0 1 2} and {3 4 5}, chunks of two rows: {0 1} wants 4 5 of the other block, {2}
  // nothing; {3 4} wants 0, {5} nothing.
  const auto two = count_evaluation(a, 2, 1, 2);
  EXPECT_EQ(two.chunks, 2);
  EXPECT_EQ(two.remote_rows, 3);
  EXPECT_EQ(two.most_remote_rows, 2);
  EXPECT_EQ(two.largest_input, 4);    // {0 1} and 4 5; {3 4} and 0 5
  EXPECT_EQ(two.largest_entries, 4);  // of either
  // Two copies share each block: {0 1}, {2}, {3 4}, {5}; a vertex that both halves want
  // travels to each.
  const auto shared = count_evaluation(a, 2, 2, 64);
  EXPECT_EQ(shared.chunks, 1);
  EXPECT_EQ(shared.remote_rows, 3);
  // Chunks of one row: 0 wants 4 5, 1 wants 4, 3 wants 0, 4 wants 0.
  EXPECT_EQ(count_evaluation(a, 2, 1, 1).remote_rows, 5);
  EXPECT_EQ(count_evaluation(a, 1, 3, 1).remote_rows, 0) << "one block row";
}

TEST(EvaluationWork, AnEstimateAgreesWithTheCountOfRandomColumns) {
  constexpr std::int64_t kVertices = 3000, kDegree = 6;
  Csr<std::int32_t> a;
  a.rows = a.columns = kVertices;
  for (std::int64_t v = 0; v < kVertices; ++v) {
    std::vector<std::int32_t> columns;
    const RandomStream stream = {.seed = test_seed(3), .row = static_cast<std::uint64_t>(v)};
    for (std::uint64_t k = 0; k < kDegree; ++k)
      columns.push_back(static_cast<std::int32_t>(random_below(stream, k, kVertices)));
    std::sort(columns.begin(), columns.end());
    columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
    a.indices.insert(a.indices.end(), columns.begin(), columns.end());
    a.indptr.push_back(std::ssize(a.indices));
  }
  for (const auto& [rows, copies] : {std::pair(1, 1), std::pair(3, 1), std::pair(4, 2)}) {
    const auto counted = count_evaluation(a, rows, copies, 200);
    const auto estimated = estimate_evaluation(static_cast<double>(kVertices),
                                               static_cast<double>(a.entries()), rows, copies, 200);
    EXPECT_EQ(estimated.chunks, counted.chunks);
    EXPECT_NEAR(estimated.remote_rows, counted.remote_rows, 0.06 * counted.remote_rows) << rows;
    EXPECT_NEAR(estimated.largest_input, counted.largest_input, 0.06 * counted.largest_input) << rows;
  }
}

}  // namespace
}  // namespace espalier
