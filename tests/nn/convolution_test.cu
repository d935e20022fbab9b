// ranks: 1
// Law: filled rows are the bias on a GPU, too. The rest of convolutions: layer_test.cu.
#include "../../src/nn/gcn.inl.hpp"

#include "dense/device_matrices.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

class ConvolutionCuda : public CudaTest {};

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
