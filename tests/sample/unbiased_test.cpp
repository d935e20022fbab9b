// ranks: 1
// Law of every sampler that draws: the mean over many minibatches of B[L] ... B[1] H is the full
// product M ... M H, of one layer and of two, where M is the row-normalised A or the normalised
// A + I (GCN), with and without weights. Of one layer, entry by entry: plan/model_matrix_test.
//
// A mean of 20000 batches lies within 5 standard errors but once in 1.7 10^6 per component.
#include <gtest/gtest.h>

#include "mpi_test.hpp"
#include "sample/sampling_laws.hpp"

namespace espalier {
namespace {

TEST(EverySampler, TheMeanOfManyMinibatchesIsTheFullProduct) {
  const Grid grid(test_world(), 1);
  const auto seed = test_seed(4);
  SCOPED_TRACE(seed);
  for (const bool weighted : {false, true}) {
    const auto a = random_matrix(grid, 30, 4, weighted);
    const auto mean = normalize_rows(a, false, weighted), gcn = normalize_with_self_loops(a);
    for (const auto& fanout : {Ids{3}, Ids{2, 4}})
      for (const char* kind : {"graphsage", "labor"}) {
        SCOPED_TRACE(kind);
        const Ids seeds = {7, 1, 12, 29, 0, 2};
        SamplerShape shape = {.fanout = fanout};
        if (!weighted) expect_unbiased(kind, a, mean, shape, seeds, seed);
        shape.aggregation = Aggregation::kMatrix;
        expect_unbiased(kind, gcn, gcn, shape, seeds, seed);
        shape.weighted = weighted;
        if (!weighted || kind != std::string("graphsage")) continue;
        expect_unbiased(kind, gcn, gcn, shape, seeds, seed);
        shape.draw = DrawLaw::kRace;
        expect_unbiased(kind, gcn, gcn, shape, seeds, seed);
        shape.aggregation = Aggregation::kMean;
        expect_unbiased(kind, a, mean, shape, seeds, seed);
      }
    for (const auto* m : {&mean, &gcn}) {
      for (const auto& fanout : {Ids{5}, Ids{6, 8}})
        expect_unbiased("ladies", *m, *m, {.fanout = fanout}, {7, 1, 12, 29, 2, 20}, seed);
      for (const auto& fanout : {Ids{8}, Ids{10, 12}})
        for (const auto& estimate :
             expect_unbiased("fastgcn", *m, *m, {.fanout = fanout}, {7, 1, 12, 29, 0, 20}, seed))
          EXPECT_TRUE(estimate.error > 0 || estimate.exact == 0) << "nothing was drawn";
    }
  }
}

}  // namespace
}  // namespace espalier
