// ranks: 1
// Laws: loss and gradient on a GPU are the CPU's but for the last bits of exp and log and the order
// of sums; rows without a label count for nothing; two runs give the same bits; a label that is no
// class shows.
#include "espalier/nn/weighted_cross_entropy.hpp"

#include "dense/device_matrices.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

class WeightedCrossEntropyCuda : public CudaTest {};

struct Result {
  double loss;
  Matrix<float> dlogits;
};

Result on_gpu(const Cuda& gpu, const Matrix<float>& logits, const Buffer<std::int32_t>& labels,
              const Buffer<double>& weights, double smoothing) {
  const auto device_logits = to_device(gpu, logits);
  const auto device_labels = upload(gpu, labels);
  const auto device_weights = upload(gpu, weights);
  Matrix<float, Cuda> dlogits;
  DeviceArray<double> loss(1);
  weighted_cross_entropy(gpu, device_logits, device_labels.data(), device_weights.data(), smoothing, 0.3,
                         dlogits, loss.data());
  return {download(gpu, loss)[0], to_host(gpu, dlogits)};
}

TEST_F(WeightedCrossEntropyCuda, AgreesWithTheCpu) {
  std::mt19937_64 random(test_seed(2));
  for (const std::int64_t rows : {0, 1, 7, 8, 9, 300, 1100})
    for (const std::int64_t classes : {1, 2, 31, 32, 33, 172})
      for (const double smoothing : {0.0, 0.25}) {
        SCOPED_TRACE(testing::Message() << rows << " x " << classes << " " << smoothing);
        auto logits = random_matrix<float>(rows, classes, random);
        for (float& z : logits.data) z *= 200;  // exponentials would overflow
        Buffer<std::int32_t> labels(static_cast<std::size_t>(rows));
        for (auto& label : labels)
          label = static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(classes + 1)) - 1;
        Buffer<double> weights(static_cast<std::size_t>(classes));
        for (auto& weight : weights) weight = static_cast<double>(random() % 9) / 4;
        Matrix<float> dlogits;
        const double loss =
            weighted_cross_entropy<float>(Cpu{1}, logits, labels, weights, smoothing, 0.3, dlogits);
        const auto result = on_gpu(gpu(), logits, labels, weights, smoothing);
        // Every sum has terms of one sign: each rounding, of at most rows + 2 classes, is relative
        // to it, but for that of -log p, to a logit of 200, which `classes` terms may have.
        const double roundings = static_cast<double>(rows + 2 * classes + 8) * 0x1p-52;
        EXPECT_NEAR(result.loss, loss, roundings * (loss + 200));
        ASSERT_EQ(result.dlogits.data.size(), dlogits.data.size());
        // Weights to 2, rounded once to float.
        for (std::size_t e = 0; e < dlogits.data.size(); ++e)
          EXPECT_NEAR(result.dlogits.data[e], dlogits.data[e], 0.3 * 2 * 0x1p-23);
        const auto again = on_gpu(gpu(), logits, labels, weights, smoothing);
        EXPECT_EQ(again.loss, result.loss);
        EXPECT_TRUE(same_bits(again.dlogits, result.dlogits));
      }
}

TEST_F(WeightedCrossEntropyCuda, ALabelThatIsNoClassShows) {
  Matrix<float> logits(1, 2);
  logits.data = {0, 0};
  EXPECT_TRUE(std::isnan(on_gpu(gpu(), logits, {2}, {1, 1}, 0).loss));
}

}  // namespace
}  // namespace espalier
