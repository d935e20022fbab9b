// ranks: 1
// Laws: the bits of both normalisations on a GPU, forward, backward and evaluated, are the CPU's;
// layer normalisation evaluated is its forward pass (normalization_test.cpp holds that).
#include "dense/device_matrices.hpp"
#include "espalier/dense/tensor_updates.hpp"
#include "espalier/nn/normalization.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

class NormalizationCuda : public CudaTest {
 protected:
  void expect_bits(std::int64_t rows, std::int64_t f, std::mt19937_64& random) {
    SCOPED_TRACE(testing::Message() << rows << " x " << f);
    auto z = random_matrix<float>(rows, f, random);
    for (float& x : z.data) x = 100 + 5 * x;
    const auto scale = random_matrix<float>(1, f, random), shift = random_matrix<float>(1, f, random),
               gradient = random_matrix<float>(rows, f, random);
    const Matrix<float> row(1, f), none;
    const auto batch = [](const auto& space, const auto& by, const auto& added, auto& normalized, auto& back,
                          auto& output, auto& inverse, auto& mean, auto& variance, auto& dscale, auto& dshift,
                          auto& evaluated) {
      batch_norm_forward<float>(space, normalized, by, added, output, inverse, mean, variance);
      batch_norm_backward<float>(space, normalized, inverse, by, back, dscale, dshift);
      batch_norm_evaluate<float>(space, mean, variance, by, added, evaluated);
      blend<float>(space, 0.1, by, mean);
    };
    expect_cpu_bits(gpu(), batch, scale, shift, z, gradient, none, none, row, row, row, row, z);
    const auto layer = [](const auto& space, const auto& by, const auto& added, auto& normalized, auto& back,
                          auto& output, auto& inverse, auto& dscale, auto& dshift, auto& evaluated) {
      layer_norm_forward<float>(space, normalized, by, added, output, inverse);
      layer_norm_backward<float>(space, normalized, inverse, by, back, dscale, dshift);
      layer_norm_evaluate<float>(space, by, added, evaluated);
    };
    expect_cpu_bits(gpu(), layer, scale, shift, z, gradient, none, none, row, row, z);
  }
};

TEST_F(NormalizationCuda, HasTheBitsOfTheCpu) {
  std::mt19937_64 random(test_seed(6));
  for (const std::int64_t rows : {0, 1, 2, 33, 600})
    for (const std::int64_t f : {1, 3, 7, 8, 9, 31, 32, 33, 100, 256}) expect_bits(rows, f, random);
  expect_bits(5000, 20, random);  // sums of many chunks
}

}  // namespace
}  // namespace espalier
