// ranks: 1
// Laws of cross-entropies on a GPU: loss and gradient are the CPU's but for the last bits of exp
// and log and the order of sums; what has no label counts for nothing; two runs give the same bits;
// a label that is no class shows.
#include "dense/device_matrices.hpp"
#include "espalier/nn/cross_entropy.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

struct LossResult {
  double loss;
  Matrix<float> dlogits;
};

class CrossEntropiesCuda : public CudaTest {
 protected:
  /// `loss(logits, dlogits, sum)`, all on the GPU.
  template <class Loss>
  LossResult run(const Matrix<float>& logits, const Loss& loss) {
    Matrix<float, Cuda> dlogits;
    DeviceArray<double> sum(1);
    loss(to_device(gpu(), logits), dlogits, sum.data());
    return {download(gpu(), sum)[0], to_host(gpu(), dlogits)};
  }
  LossResult softmax(const Matrix<float>& logits, const Buffer<std::int32_t>& labels, double scale) {
    const auto on_gpu = upload(gpu(), labels);
    return run(logits, [&](const auto& there, auto& dlogits, double* sum) {
      softmax_cross_entropy(gpu(), there, on_gpu.data(), scale, dlogits, sum);
    });
  }
  LossResult weighted(const Matrix<float>& logits, const Buffer<std::int32_t>& labels,
                      const Buffer<double>& weights, double smoothing) {
    const auto on_gpu = upload(gpu(), labels);
    const auto of_classes = upload(gpu(), weights);
    return run(logits, [&](const auto& there, auto& dlogits, double* sum) {
      weighted_cross_entropy(gpu(), there, on_gpu.data(), of_classes.data(), smoothing, 0.3, dlogits, sum);
    });
  }
  LossResult sigmoid(const Matrix<float>& logits, const Buffer<std::uint8_t>& labels) {
    const auto on_gpu = upload(gpu(), labels);
    return run(logits, [&](const auto& there, auto& dlogits, double* sum) {
      sigmoid_cross_entropy(gpu(), there, on_gpu.data(), 0.3, dlogits, sum);
    });
  }
};

/// `again`: of a second run.
void expect_near_losses(const LossResult& result, const LossResult& again, const LossResult& expected,
                        double loss_tolerance, double most_weight = 1) {
  EXPECT_NEAR(result.loss, expected.loss, loss_tolerance);
  ASSERT_EQ(result.dlogits.data.size(), expected.dlogits.data.size());
  for (std::size_t e = 0; e < expected.dlogits.data.size(); ++e)  // rounded once to float
    EXPECT_NEAR(result.dlogits.data[e], expected.dlogits.data[e], 0.3 * most_weight * 0x1p-23);
  EXPECT_EQ(again.loss, result.loss);
  EXPECT_TRUE(same_bits(again.dlogits, result.dlogits));
}

Matrix<float> large_logits(std::int64_t rows, std::int64_t columns, std::mt19937_64& random) {
  auto logits = random_matrix<float>(rows, columns, random);
  for (float& z : logits.data) z *= 200;  // exponentials would overflow
  return logits;
}

TEST_F(CrossEntropiesCuda, OverClassesAgreeWithTheCpu) {
  std::mt19937_64 random(test_seed(2));
  for (const std::int64_t rows : {0, 1, 7, 8, 9, 300, 1100})
    for (const std::int64_t classes : {1, 2, 31, 32, 33, 47, 172}) {
      SCOPED_TRACE(testing::Message() << rows << " x " << classes);
      const auto logits = large_logits(rows, classes, random);
      Buffer<std::int32_t> labels(static_cast<std::size_t>(rows));
      for (auto& label : labels)
        label = static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(classes + 1)) - 1;
      LossResult expected;
      expected.loss = softmax_cross_entropy<float>(Cpu{1}, logits, labels, 0.3, expected.dlogits);
      // Every sum has terms of one sign: each rounding, of at most rows + classes, is
      // relative to it.
      expect_near_losses(softmax(logits, labels, 0.3), softmax(logits, labels, 0.3), expected,
                         static_cast<double>(rows + classes + 8) * 0x1p-52 * (expected.loss + 200));
      Buffer<double> weights(static_cast<std::size_t>(classes));
      for (auto& weight : weights) weight = static_cast<double>(random() % 9) / 4;
      for (const double smoothing : {0.0, 0.25}) {
        expected.loss =
            weighted_cross_entropy<float>(Cpu{1}, logits, labels, weights, smoothing, 0.3, expected.dlogits);
        // Roundings are of at most rows + 2 classes, but for that of -log p, to a logit of 200,
        // which `classes` terms may have.
        expect_near_losses(weighted(logits, labels, weights, smoothing),
                           weighted(logits, labels, weights, smoothing), expected,
                           static_cast<double>(rows + 2 * classes + 8) * 0x1p-52 * (expected.loss + 200),
                           /*most_weight=*/2);
      }
    }
}

TEST_F(CrossEntropiesCuda, OverLabelsAgreeWithTheCpu) {
  std::mt19937_64 random(test_seed(2));
  for (const std::int64_t rows : {0, 1, 7, 8, 9, 300, 1100})
    for (const std::int64_t columns : {1, 2, 31, 32, 33, 112}) {
      SCOPED_TRACE(testing::Message() << rows << " x " << columns);
      const auto logits = large_logits(rows, columns, random);
      Buffer<std::uint8_t> labels(logits.data.size());
      for (auto& label : labels) label = random() % 5 == 0 ? 255 : random() % 2;
      LossResult expected;
      expected.loss = sigmoid_cross_entropy<float>(Cpu{1}, logits, labels, 0.3, expected.dlogits);
      const auto result = sigmoid(logits, labels);
      // All terms are positive: each rounding, of at most rows + columns, is relative to the sum.
      expect_near_losses(result, sigmoid(logits, labels), expected,
                         static_cast<double>(rows + columns + 8) * 0x1p-52 * expected.loss);
      for (std::size_t e = 0; e < labels.size(); ++e)
        if (labels[e] == 255) EXPECT_EQ(result.dlogits.data[e], 0);
    }
}

TEST_F(CrossEntropiesCuda, ALabelThatIsNoClassShows) {
  const auto logits = matrix_of<float>(1, 2, {0, 0});
  EXPECT_TRUE(std::isnan(softmax(logits, {2}, 1).loss));
  EXPECT_TRUE(std::isnan(weighted(logits, {2}, {1, 1}, 0).loss));
}

}  // namespace
}  // namespace espalier
