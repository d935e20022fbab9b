// ranks: 1
// Laws: those of convolution_cases.hpp, on a GPU; filled rows are the bias.
#include "nn/convolution_cases.hpp"

#include "dense/device_matrices.hpp"
#include "espalier/sparse/transpose.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

class ConvolutionCuda : public CudaTest {};

TEST_F(ConvolutionCuda, HandChecked) {
  const SharedDeviceBlock block(gpu(), convolved_block(), 3),
      transposed(gpu(), transpose(convolved_block()), 5);
  check_convolutions<float>(gpu(), block.block, transposed.block);
}

TEST_F(ConvolutionCuda, RowsAreFilled) {
  std::mt19937_64 random(test_seed(4));
  for (const std::int64_t rows : {0, 1, 90})
    for (const std::int64_t columns : {1, 3, 4, 31, 100, 256}) {
      SCOPED_TRACE(testing::Message() << rows << " x " << columns);
      const auto fill = [](const auto& space, const auto& bias, auto& z) {
        fill_rows<float>(space, bias, z);
      };
      expect_cpu_bits(gpu(), fill, random_matrix<float>(1, columns, random), Matrix<float>(rows, columns));
    }
}

}  // namespace
}  // namespace espalier
