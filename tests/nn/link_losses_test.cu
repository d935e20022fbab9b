// ranks: 1
// Law: losses of links and their gradients have the CPU's bits on a GPU.
#include "dense/device_matrices.hpp"
#include "mpi_test.hpp"
#include "nn/link_losses_cases.hpp"

namespace espalier {
namespace {

class LinkLossesCuda : public CudaTest {
 protected:
  LossResults on_gpu(const LinkLoss& loss, const ExampleScores& x, double scale) {
    const auto positive = to_device(gpu(), x.positive), negative = to_device(gpu(), x.negative);
    Matrix<float, Cuda> dpositive(x.positive.rows, 1), dnegative(x.negative.rows, x.negative.columns);
    DeviceArray<double> sum(1);
    link_losses(gpu(), loss, x.positive.rows, x.negative.columns, positive.data.data(), negative.data.data(),
                scale, dpositive.data.data(), dnegative.data.data(), sum.data());
    return {download(gpu(), sum)[0], to_host(gpu(), dpositive), to_host(gpu(), dnegative)};
  }
};

TEST_F(LinkLossesCuda, AreTheCpusBits) {
  std::mt19937_64 random(test_seed(76));
  for_each_link_loss([&](const LinkLoss& loss) {
    for (const std::int64_t examples : {0, 1, 9, 1100})
      for (const std::int64_t negatives : {0, 1, 31, 32, 33, 70})
        for (const float size : {1.0f, 200.0f}) {
          SCOPED_TRACE(testing::Message() << examples << " x " << negatives << " of " << size);
          const ExampleScores x(examples, negatives, size, random);
          expect_same_bits(on_gpu(loss, x, 0.3), on_cpu(loss, x, 0.3));
        }
  });
}

}  // namespace
}  // namespace espalier
