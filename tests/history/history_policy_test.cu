// ranks: 1
// Law: scores on a GPU are the CPU's to the last bit, also of what is not a number.
#include "cuda_test.hpp"
#include "history/history_policy_cases.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

class HistoryPolicyOnGpu : public CudaTest {};

TEST_F(HistoryPolicyOnGpu, ScoresAreThoseOfTheCpu) {
  std::mt19937_64 random(test_seed(11));
  for (const std::int64_t rows : {0, 1, 5, 33, 700})
    for (const std::int64_t width : {1, 7, 8, 9, 64, 100}) {
      PolicyCase of(rows, width, 0.4, random);
      if (rows > 5) of.gradient(3, 0) = NAN, of.gradient(4, width - 1) = -INFINITY;
      EXPECT_EQ(candidates_of(gpu(), of), candidates_of(Cpu{1}, of));
    }
}

}  // namespace
}  // namespace espalier
