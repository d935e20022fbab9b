// ranks: 1
// Law of GraphSAGE: the mean over many minibatches of B[L] ... B[1] H is the full product M ... M
// H, where M is the row-normalised A (mean aggregator, uniform draws) or the normalised A + I (GCN,
// uniform and weighted draws).
//
// A mean of 20000 batches lies within 5 standard errors but once in 1.7 10^6 per component;
// there are 96.
#include <gtest/gtest.h>

#include "mpi_test.hpp"
#include "sample/sampling_laws.hpp"

namespace espalier {
namespace {

void expect_mean(const SparseMatrix& m, const SparseMatrix& estimated, const SamplerShape& shape,
                 std::uint64_t seed) {
  expect_unbiased("graphsage", m, estimated, shape, {7, 1, 12, 29, 0, 2}, seed);
}

SparseMatrix graph(const Grid& grid, bool weighted) {
  return random_matrix(grid, 30, 5, weighted);
}

class GraphSageMean : public testing::TestWithParam<Ids> {};

TEST_P(GraphSageMean, OfManyMinibatchesIsTheFullProductUniformMean) {
  const Grid grid(test_world(), 1);
  const auto seed = test_seed(1);
  SCOPED_TRACE(seed);
  const auto a = graph(grid, false);
  expect_mean(a, normalize_rows(a, false, false), {.fanout = GetParam()}, seed);
}

TEST_P(GraphSageMean, OfManyMinibatchesIsTheFullProductUniformGcn) {
  const Grid grid(test_world(), 1);
  const auto seed = test_seed(2);
  SCOPED_TRACE(seed);
  for (const bool weighted_graph : {false, true}) {
    const auto m = normalize_with_self_loops(graph(grid, weighted_graph));
    expect_mean(m, m, {.fanout = GetParam(), .aggregation = Aggregation::kMatrix}, seed);
  }
}

TEST_P(GraphSageMean, OfManyMinibatchesIsTheFullProductWeightedGcn) {
  const Grid grid(test_world(), 1);
  const auto seed = test_seed(3);
  SCOPED_TRACE(seed);
  const auto m = normalize_with_self_loops(graph(grid, true));
  expect_mean(m, m, {.fanout = GetParam(), .weighted = true, .aggregation = Aggregation::kMatrix}, seed);
}

INSTANTIATE_TEST_SUITE_P(OneAndTwoLayers, GraphSageMean, testing::Values(Ids{3}, Ids{2, 4}));

}  // namespace
}  // namespace espalier
