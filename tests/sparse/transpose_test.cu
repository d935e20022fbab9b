// ranks: 1
// Law: the transpose of a GPU is the CPU's, entry by entry, with its positions and without,
// wherever in common arrays the block lies.
#include "espalier/sparse/transpose.hpp"

#include "dense/device_matrices.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

class TransposeCuda : public CudaTest {};

TEST_F(TransposeCuda, IsThatOfTheCpu) {
  std::mt19937_64 random(test_seed(31));
  Csr<std::int32_t, Cuda> reused;
  DeviceArray<std::int64_t> positions;
  for (const std::int64_t rows : {0, 1, 7, 300})
    for (const std::int64_t columns : {0, 1, 9, 64, 1000})
      for (const int most : {0, 2, 20})
        for (const bool values : {true, false}) {
          SCOPED_TRACE(testing::Message() << rows << " x " << columns << ", at most " << most);
          Block block = random_block_matrix(rows, columns, most, random);
          if (!values) block.values.clear();
          Block expected;
          Buffer<std::int64_t> expected_positions;
          transpose(Cpu{1}, block, expected, &expected_positions);
          const SharedDeviceBlock on_device(gpu(), block, 11);
          transpose(gpu(), on_device.block, reused);
          EXPECT_TRUE(same_block(to_host(gpu(), reused), expected));
          transpose(gpu(), on_device.block, reused, &positions);
          EXPECT_TRUE(same_block(to_host(gpu(), reused), expected));
          EXPECT_EQ(download(gpu(), positions), expected_positions);
        }
}

}  // namespace
}  // namespace espalier
