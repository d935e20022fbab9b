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

/// A view that begins `elements` behind the memory's beginning.
template <class T>
struct Shifted {
  DeviceArray<T> memory;
  MatrixView<T, Cuda> view;

  Shifted(const Cuda& gpu, const Matrix<T>& matrix, std::size_t elements)
      : memory(matrix.data.size() + elements), view(matrix.rows, matrix.columns, memory.data() + elements) {
    copy_bytes_to_device(gpu, matrix.data.data(), view.data, matrix.data.size() * sizeof(T));
  }
  Matrix<T> back(const Cuda& gpu) const {
    Matrix<T> result(view.rows, view.columns);
    result.data = download(gpu, view.data, result.data.size());
    return result;
  }
};

void expect_cpu_bits(const Cuda& gpu, const Block& block, std::int64_t f, std::size_t shift,
                     std::mt19937_64& random) {
  SCOPED_TRACE(testing::Message() << block.rows << " x " << block.columns << ", " << block.entries()
                                  << " entries, f " << f << " shift " << shift);
  const auto x = random_matrix<float>(block.columns, f, random),
             before = random_matrix<float>(block.rows, f, random);
  const SharedDeviceBlock on_device(gpu, block, 3);
  const Shifted<float> device_x(gpu, x, shift);
  for (const auto update : {Update::kOverwrite, Update::kAccumulate}) {
    auto expected = before;
    const Shifted<float> y(gpu, before, shift);
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
        expect_cpu_bits(gpu(), random_block_matrix(rows, 1 + rows, most, random), f, 0, random);
    Block block = random_block_matrix(20, 90, 30, random);
    expect_cpu_bits(gpu(), block, f, 1, random);  // no address is that of a pack
    expect_cpu_bits(gpu(), block, f, 2, random);
    block.values.clear();
    expect_cpu_bits(gpu(), block, f, 4, random);
  }
}

TEST_F(SpmmCuda, ALargeBlockTakesManyThreadBlocks) {
  std::mt19937_64 random(test_seed(18));
  expect_cpu_bits(gpu(), random_block_matrix(700, 200, 9, random), 100, 0, random);
  expect_cpu_bits(gpu(), random_block_matrix(3000, 20, 3, random), 5, 0, random);
}

// What is read beside a row's entries takes no part: infinity times it would not be a number.
TEST_F(SpmmCuda, OnlyTheEntriesTakePart) {
  for (int entries = 1; entries <= 9; ++entries) {
    Block block;
    block.rows = 1;
    block.columns = 1;
    block.indptr = {0, entries};
    block.indices.assign(static_cast<std::size_t>(entries), 0);
    block.values.assign(static_cast<std::size_t>(entries), INFINITY);
    Matrix<float> x(1, 8);
    std::ranges::fill(x.data, 2.0f);
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
