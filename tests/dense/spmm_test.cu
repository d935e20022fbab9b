// ranks: 1
// Laws: the bits of a GPU's products are the CPU's, for any shape, alignment and storage of X, wherever in common
// arrays the block lies. cuSPARSE, which sums in an order of its own, agrees within rounding.
#include "espalier/dense/spmm.hpp"

#include "dense/device_matrices.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

class SpmmCuda : public CudaTest {};

void expect_cpu_bits(const Cuda& gpu, const Block& block, std::int64_t f, std::mt19937_64& random) {
  SCOPED_TRACE(testing::Message() << block.rows << " x " << block.columns << ", " << block.entries()
                                  << " entries, f " << f);
  const auto x = random_matrix<float>(block.columns, f, random),
             before = random_matrix<float>(block.rows, f, random);
  const SharedBlock on_device(gpu, block, 3);
  const auto device_x = to_device(gpu, x);
  for (const auto update : {Update::kOverwrite, Update::kAccumulate}) {
    auto expected = before;
    auto y = to_device(gpu, before);
    spmm<float>(Cpu{1}, block, x, expected, update);
    spmm<float>(gpu, on_device.block, device_x, y, update);
    EXPECT_TRUE(same_bits(to_host(gpu, y), expected));
  }
}

TEST_F(SpmmCuda, HasTheBitsOfTheCpu) {
  std::mt19937_64 random(test_seed(17));
  for (const std::int64_t rows : {0, 1, 70})
    for (const std::int64_t columns : {1, 3, 90})
      for (const int most : {0, 1, 4, 30})
        for (const std::int64_t f : {1, 3, 16, 31, 32, 33, 41, 100, 256, 260, 300}) {
          Block block = random_block_matrix(rows, columns, most, random);
          expect_cpu_bits(gpu(), block, f, random);
          block.values.clear();
          if (f == 33 || f == 100) expect_cpu_bits(gpu(), block, f, random);
        }
}

}  // namespace
}  // namespace espalier
