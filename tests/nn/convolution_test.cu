// ranks: 1
// Laws: the hand-checked minibatch of each convolution on a GPU; filled rows are the bias.
#include "espalier/nn/convolution.hpp"

#include "dense/device_matrices.hpp"
#include "espalier/nn/gcn.hpp"
#include "espalier/nn/sage.hpp"
#include "espalier/sparse/transpose.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

class ConvolutionCuda : public CudaTest {
 protected:
  Matrix<float, Cuda> matrix(std::int64_t rows, std::int64_t columns, std::initializer_list<float> data) {
    Matrix<float> m(rows, columns);
    std::copy(data.begin(), data.end(), m.data.begin());
    return to_device(gpu(), m);
  }
  Buffer<float> numbers(const Matrix<float, Cuda>& m) { return to_host(gpu(), m).data; }
};

/// Two destinations, three sources; the first has the mean of sources 1 and 2, the second source 2.
Block small_block() {
  Block block;
  block.rows = 2;
  block.columns = 3;
  block.indptr = {0, 2, 3};
  block.indices = {1, 2, 2};
  block.values = {0.5f, 0.5f, 1.0f};
  return block;
}

// The numbers are those of the CPU's test; all are exact in float32.
TEST_F(ConvolutionCuda, SageHandChecked) {
  const SharedDeviceBlock shared(gpu(), small_block(), 3),
      transpose_shared(gpu(), transpose(small_block()), 5);
  const auto &block = shared.block, &transposed = transpose_shared.block;
  const auto x = matrix(3, 1, {1, 2, 4}), self = matrix(1, 2, {10, 0}), neighbour = matrix(1, 2, {1, 100}),
             bias = matrix(1, 2, {0.5, 0.25}), dz = matrix(2, 2, {1, 0, 0, 2});
  for (const ProductOrder order : {ProductOrder::kAggregateFirst, ProductOrder::kMultiplyFirst}) {
    Matrix<float, Cuda> product, z, dself(1, 2), dneighbour(1, 2), dx;
    sage_forward<float>(gpu(), block, order, x, {self, neighbour, bias}, product, z);
    EXPECT_EQ(numbers(z), (Buffer<float>{10 + 3 + 0.5, 300 + 0.25, 20 + 4 + 0.5, 400 + 0.25}));
    sage_backward<float>(gpu(), block, transposed, order, x, {self, neighbour, bias}, product, dz, dself,
                         dneighbour, &dx);
    EXPECT_EQ(numbers(dself), (Buffer<float>{1, 4}));
    EXPECT_EQ(numbers(dneighbour), (Buffer<float>{3, 8}));
    EXPECT_EQ(numbers(dx), (Buffer<float>{10, 0.5, 0.5 + 200}));
  }
}

TEST_F(ConvolutionCuda, GcnHandChecked) {
  const SharedDeviceBlock shared(gpu(), small_block(), 3),
      transpose_shared(gpu(), transpose(small_block()), 5);
  const auto &block = shared.block, &transposed = transpose_shared.block;
  const auto x = matrix(3, 1, {1, 2, 4}), weight = matrix(1, 2, {1, 100}), bias = matrix(1, 2, {0.5, 0.25}),
             dz = matrix(2, 2, {1, 0, 0, 2});
  for (const ProductOrder order : {ProductOrder::kAggregateFirst, ProductOrder::kMultiplyFirst}) {
    Matrix<float, Cuda> product, z, dweight(1, 2), dx;
    gcn_forward<float>(gpu(), block, order, x, {weight, bias}, product, z);
    EXPECT_EQ(numbers(z), (Buffer<float>{3.5, 300.25, 4.5, 400.25}));
    gcn_backward<float>(gpu(), transposed, order, x, {weight, bias}, product, dz, dweight, &dx);
    EXPECT_EQ(numbers(dweight), (Buffer<float>{3, 8}));
    EXPECT_EQ(numbers(dx), (Buffer<float>{0, 0.5, 0.5 + 200}));
  }
}

TEST_F(ConvolutionCuda, RowsAreFilled) {
  std::mt19937_64 random(test_seed(4));
  for (const std::int64_t rows : {0, 1, 90})
    for (const std::int64_t columns : {1, 3, 4, 31, 100, 256}) {
      const auto bias = random_matrix<float>(1, columns, random);
      Matrix<float> expected(rows, columns);
      fill_rows<float>(Cpu{1}, bias, expected);
      Matrix<float, Cuda> z(rows, columns);
      fill_rows<float>(gpu(), to_device(gpu(), bias), z);
      EXPECT_TRUE(same_bits(to_host(gpu(), z), expected)) << rows << " x " << columns;
    }
}

}  // namespace
}  // namespace espalier
