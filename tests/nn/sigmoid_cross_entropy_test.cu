// ranks: 1
// Laws: loss and gradient on a GPU are the CPU's but for the last bits of exp and log and the order
// of sums; unknown labels count for nothing; two runs give the same bits.
#include "espalier/nn/sigmoid_cross_entropy.hpp"

#include "dense/device_matrices.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

class SigmoidCrossEntropyCuda : public CudaTest {};

struct Result {
  double loss;
  Matrix<float> dlogits;
};

Result on_gpu(const Cuda& gpu, const Matrix<float>& logits, const Buffer<std::uint8_t>& labels,
              double scale) {
  const auto device_logits = to_device(gpu, logits);
  const auto device_labels = upload(gpu, labels);
  Matrix<float, Cuda> dlogits;
  DeviceArray<double> loss(1);
  sigmoid_cross_entropy(gpu, device_logits, device_labels.data(), scale, dlogits, loss.data());
  return {download(gpu, loss)[0], to_host(gpu, dlogits)};
}

TEST_F(SigmoidCrossEntropyCuda, AgreesWithTheCpu) {
  std::mt19937_64 random(test_seed(2));
  for (const std::int64_t rows : {0, 1, 7, 8, 9, 300, 1100})
    for (const std::int64_t columns : {1, 2, 31, 32, 33, 112}) {
      SCOPED_TRACE(testing::Message() << rows << " x " << columns);
      auto logits = random_matrix<float>(rows, columns, random);
      for (float& z : logits.data) z *= 200;  // exponentials would overflow
      Buffer<std::uint8_t> labels(logits.data.size());
      for (auto& label : labels) label = random() % 5 == 0 ? 255 : random() % 2;
      Matrix<float> dlogits;
      const double loss = sigmoid_cross_entropy<float>(Cpu{1}, logits, labels, 0.3, dlogits);
      const auto result = on_gpu(gpu(), logits, labels, 0.3);
      // All terms are positive: each rounding, of at most rows + columns, is relative to the sum.
      const double tolerance = static_cast<double>(rows + columns + 8) * 0x1p-52;
      EXPECT_NEAR(result.loss, loss, tolerance * loss);
      ASSERT_EQ(result.dlogits.data.size(), dlogits.data.size());
      for (std::size_t e = 0; e < dlogits.data.size(); ++e) {  // rounded once to float
        EXPECT_NEAR(result.dlogits.data[e], dlogits.data[e], 0.3 * 0x1p-23);
        if (labels[e] == 255) EXPECT_EQ(result.dlogits.data[e], 0);
      }
      const auto again = on_gpu(gpu(), logits, labels, 0.3);
      EXPECT_EQ(again.loss, result.loss);
      EXPECT_TRUE(same_bits(again.dlogits, result.dlogits));
    }
}

}  // namespace
}  // namespace espalier
