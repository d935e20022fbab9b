// ranks: 1
// Law: a cache of history on a GPU is as a loop over a map makes it, and holds the words that the
// CPU's holds, at every precision.
#include "espalier/history/history_cache.hpp"

#include "cuda_test.hpp"
#include "history/history_cases.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

class HistoryCacheOnGpu : public CudaTest {};

TEST_F(HistoryCacheOnGpu, HoldsTheWordsOfTheCpu) {
  const auto seed = test_seed(31);
  std::size_t records = 0;
  for (const auto& shape : history_shapes()) {
    SCOPED_TRACE(fmt::format("seed {} {}", seed, name_of(shape)));
    const auto state = expect_as_a_map(gpu(), shape, 60, 12, seed);
    EXPECT_EQ(state, expect_as_a_map(Cpu{1}, shape, 60, 12, seed));
    records += state.records.size();
  }
  EXPECT_GT(records, 1000u);
}

TEST_F(HistoryCacheOnGpu, ACheckpointHoldsNothingThatWasDoneAhead) {
  expect_checkpoints_as_without_looking_ahead(gpu(), {.layers = 2, .width = 5, .t_stale = 7, .entries = 1500},
                                              test_seed(35));
}

}  // namespace
}  // namespace espalier
