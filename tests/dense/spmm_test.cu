// ranks: 1
// Laws: the bits of a GPU's products are the CPU's, for any shape, alignment and storage of X,
// wherever in common arrays the block lies. cuSPARSE, which sums in an order of its own, agrees
// within rounding.
#include "espalier/dense/spmm.hpp"

#include "dense/device_matrices.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

class SpmmCuda : public CudaTest {};

void expect_products_of_the_cpu(const Cuda& gpu, const Block& block, std::int64_t f, std::size_t shift,
                                std::mt19937_64& random) {
  SCOPED_TRACE(testing::Message() << block.rows << " x " << block.columns << ", " << block.entries()
                                  << " entries, f " << f << " shift " << shift);
  const auto x = random_matrix<float>(block.columns, f, random),
             before = random_matrix<float>(block.rows, f, random);
  const SharedDeviceBlock on_device(gpu, block, 3);
  const ShiftedDeviceMatrix<float> device_x(gpu, x, shift);
  for (const auto update : {Update::kOverwrite, Update::kAccumulate}) {
    auto expected = before;
    const ShiftedDeviceMatrix<float> y(gpu, before, shift);
    spmm<float>(Cpu{1}, block, x, expected, update);
    spmm<float>(gpu, on_device.block, device_x.view, y.view, update);
    EXPECT_TRUE(same_bits(y.back(gpu), expected));
  }
}

TEST_F(SpmmCuda, HasTheBitsOfTheCpu) {
  std::mt19937_64 random(test_seed(17));
  for (const std::int64_t f : {1, 3, 16, 31, 32, 33, 41, 64, 100, 128, 256, 260, 300}) {
    for (const std::int64_t rows : {0, 1, 30})
      for (const int most : {0, 1, 4, 11})
        expect_products_of_the_cpu(gpu(), random_block_matrix(rows, 1 + rows, most, random), f, 0, random);
    Block block = random_block_matrix(20, 90, 30, random);
    expect_products_of_the_cpu(gpu(), block, f, 1, random);  // no address is that of a pack
    expect_products_of_the_cpu(gpu(), block, f, 2, random);
    block.values.clear();
    expect_products_of_the_cpu(gpu(), block, f, 4, random);
  }
}

TEST_F(SpmmCuda, ALargeBlockTakesManyThreadBlocks) {
  std::mt19937_64 random(test_seed(18));
  expect_products_of_the_cpu(gpu(), random_block_matrix(700, 200, 9, random), 100, 0, random);
  expect_products_of_the_cpu(gpu(), random_block_matrix(3000, 20, 3, random), 5, 0, random);
}

TEST_F(SpmmCuda, TheFirstRowsOfXStandBesideTheProduct) {
  std::mt19937_64 random(test_seed(19));
  for (const std::int64_t f : {1, 7, 32, 100, 256, 300})
    for (const int most : {0, 1, 9}) {
      const auto block = random_block_matrix(30, 50, most, random);
      const auto x = random_matrix<float>(50, f, random);
      Matrix<float> product(30, f), expected(30, 2 * f);
      spmm<float>(Cpu{1}, block, x, product);
      for (std::int64_t i = 0; i < 30; ++i) {
        std::copy_n(x.row(i), f, expected.row(i));
        std::copy_n(product.row(i), f, expected.row(i) + f);
      }
      auto y = to_device(gpu(), filled_matrix<float>(30, 2 * f, NAN));
      spmm_beside_rows<float>(gpu(), to_device(gpu(), block), to_device(gpu(), x), y);
      EXPECT_TRUE(same_bits(to_host(gpu(), y), expected)) << f << ", at most " << most << " entries";
    }
}

// What is read beside a row's entries takes no part: infinity times it would not be a number.
TEST_F(SpmmCuda, OnlyTheEntriesTakePart) {
  for (int entries = 1; entries <= 9; ++entries) {
    const auto count = static_cast<std::size_t>(entries);
    const Block block = {1, 1, {0, entries}, Buffer<std::int32_t>(count, 0), Buffer<float>(count, INFINITY)};
    const auto x = filled_matrix(1, 8, 2.0f);
    Matrix<float, Cuda> y(1, 8);
    spmm<float>(gpu(), to_device(gpu(), block), to_device(gpu(), x), y);
    for (const float sum : to_host(gpu(), y).data) EXPECT_EQ(sum, INFINITY) << entries;
  }
}

// Each sum is off by at most (entries of the row + 1) 2^-24 times the sum of the
// magnitudes; both are.
TEST_F(SpmmCuda, CusparseAgrees) {
  std::mt19937_64 random(test_seed(20));
  const Cuda by_cusparse(0, Precision::kFp32, SparseProducts::kCusparse);
  bool differ = false;
  for (const std::int64_t rows : {0, 1, 60})
    for (const int most : {0, 12})
      for (const bool values : {true, false})
        for (const auto update : {Update::kOverwrite, Update::kAccumulate}) {
          Block block = random_block_matrix(rows, 50, most, random);
          if (!values) block.values.clear();
          const auto x = random_matrix<float>(50, 33, random),
                     before = random_matrix<float>(rows, 33, random);
          const SharedDeviceBlock on_device(gpu(), block, 7);
          const auto device_x = to_device(gpu(), x);
          auto ours = to_device(gpu(), before), theirs = to_device(gpu(), before);
          spmm<float>(gpu(), on_device.block, device_x, ours, update);
          spmm<float>(by_cusparse, on_device.block, device_x, theirs, update);
          differ = differ || !same_bits(to_host(gpu(), ours), to_host(gpu(), theirs));
          EXPECT_LT(largest_difference(to_host(gpu(), ours), to_host(gpu(), theirs)), 2 * 13 * 13 * 0x1p-24);
        }
  EXPECT_TRUE(differ) << "was cuSPARSE asked at all?";
}

}  // namespace
}  // namespace espalier
