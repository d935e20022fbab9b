// ranks: 1
// Law: pruning on a GPU obeys the laws of pruning (prune_test.cpp), and gives the CPU's arrays.
#include "espalier/history/prune.hpp"

#include "cuda_test.hpp"
#include "history/prune_cases.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

class PruneOnGpu : public CudaTest {};

TEST_F(PruneOnGpu, GivesTheArraysOfTheCpu) {
  const auto seed = test_seed(18);
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (const auto& shape : prune_shapes()) {
    SCOPED_TRACE(name_of(shape));
    const PruneCase of(shape, random);
    expect_same(expect_prunes(gpu(), of), expect_prunes(Cpu{1}, of));
  }
}

}  // namespace
}  // namespace espalier
