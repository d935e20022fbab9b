// ranks: 1
// Laws: those of tensor_updates_cases.hpp, on a GPU, with the bits of the CPU.
#include "dense/device_matrices.hpp"
#include "dense/random_matrices.hpp"
#include "dense/tensor_updates_cases.hpp"

namespace espalier {
namespace {

class TensorUpdatesCuda : public CudaTest {};

TEST_F(TensorUpdatesCuda, ClipsToTheBitsOfTheCpu) {
  check_clipping([this](double most, const std::vector<Matrix<float>>& matrices) {
    auto on_gpu = all_to_device(gpu(), matrices);
    DeviceArray<double> scratch;
    clip_to_norm(gpu(), most, on_gpu, scratch);
    auto expected = matrices;
    Array<Cpu, double> on_host;
    clip_to_norm(Cpu{1}, most, expected, on_host);
    std::vector<Matrix<float>> clipped;
    for (std::size_t m = 0; m < matrices.size(); ++m) {
      clipped.push_back(to_host(gpu(), on_gpu[m]));
      for (std::size_t k = 0; k < expected[m].data.size(); ++k)
        if (!std::isnan(expected[m].data[k])) EXPECT_EQ(clipped[m].data[k], expected[m].data[k]);
    }
    return clipped;
  });
}

TEST_F(TensorUpdatesCuda, BlendsAsTheCpuDoes) {
  check_blending([this](double share, const Matrix<float>& from, const Matrix<float>& to) {
    auto on_gpu = to_device(gpu(), to);
    blend(gpu(), share, to_device(gpu(), from), on_gpu);
    return to_host(gpu(), on_gpu);
  });
}

TEST_F(TensorUpdatesCuda, WeighsAsTheCpuDoes) {
  check_weighted_means(
      [this](double divisor, const Matrix<float>& mean, std::int64_t at) {
        Matrix<float, Cuda> sum;
        auto divisors = to_device(gpu(), filled_matrix(1, 3, 0.0f));
        weigh(gpu(), divisor, to_device(gpu(), mean), sum, divisors, at);
        return Weighed{to_host(gpu(), sum), to_host(gpu(), divisors)};
      },
      [this](double share, const Matrix<float>& sum, const Matrix<float>& divisors, std::int64_t at,
             const Matrix<float>& to) {
        auto on_gpu = to_device(gpu(), to);
        blend_mean(gpu(), share, to_device(gpu(), sum), to_device(gpu(), divisors), at, on_gpu);
        return to_host(gpu(), on_gpu);
      });
}

}  // namespace
}  // namespace espalier
