// ranks: 1
// Law: the transpose of a GPU is the CPU's, entry by entry, wherever in common arrays the block lies.
#include "espalier/sparse/transpose.hpp"

#include "dense/device_matrices.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

class TransposeCuda : public CudaTest {};

TEST_F(TransposeCuda, IsThatOfTheCpu) {
  std::mt19937_64 random(test_seed(31));
  Csr<std::int32_t, Cuda> reused;
  for (const std::int64_t rows : {0, 1, 7, 300})
    for (const std::int64_t columns : {0, 1, 9, 64, 1000})
      for (const int most : {0, 2, 20})
        for (const bool values : {true, false}) {
          SCOPED_TRACE(testing::Message() << rows << " x " << columns << ", at most " << most);
          Block block = random_block_matrix(rows, columns, most, random);
          if (!values) block.values.clear();
          const auto expected = transpose(block);
          const SharedBlock on_device(gpu(), block, 11);
          transpose(gpu(), on_device.block, reused);
          const auto found = to_host(gpu(), reused);
          EXPECT_EQ(found.rows, expected.rows);
          EXPECT_EQ(found.columns, expected.columns);
          EXPECT_EQ(found.indptr, expected.indptr);
          EXPECT_EQ(found.indices, expected.indices);
          EXPECT_EQ(found.values, expected.values);
        }
}

}  // namespace
}  // namespace espalier
