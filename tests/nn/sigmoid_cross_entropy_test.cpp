// ranks: 1
// Laws: loss and gradient are PyTorch's, also where exponentials overflow; unknown labels count for
// nothing; the gradient is the loss's slope; threads do not matter.
#include "espalier/nn/sigmoid_cross_entropy.hpp"

#include <gtest/gtest.h>

#include "dense/random_matrices.hpp"
#include "mpi_test.hpp"
#include "oracle/fixture.hpp"

namespace espalier {
namespace {

TEST(SigmoidCrossEntropy, HandChecked) {
  Matrix<double> logits(2, 2), dlogits;
  logits.data = {0, std::log(3.0), 5, -std::log(3.0)};  // sigmoid 1/2 3/4, -, 1/4
  const std::vector<std::uint8_t> labels{1, 0, 255, 0};
  const double loss = sigmoid_cross_entropy<double>(Cpu{1}, logits, labels, 4.0, dlogits);
  EXPECT_DOUBLE_EQ(loss, std::log(2.0) + std::log(4.0) + std::log(4.0 / 3));
  const double expected[] = {-2, 3, 0, 1};
  for (std::size_t e = 0; e < 4; ++e) EXPECT_NEAR(dlogits.data[e], expected[e], 1e-15);
}

TEST(SigmoidCrossEntropy, AgreesWithPyTorch) {
  const auto json = read_fixture("task_losses").at("labels");
  const auto labels = json.at("labels").get<std::vector<std::uint8_t>>();
  const double expected = json.at("loss"), scale = json.at("scale");
  Matrix<double> dlogits;
  EXPECT_NEAR(
      sigmoid_cross_entropy<double>(Cpu{1}, to_matrix<double>(json.at("logits")), labels, scale, dlogits),
      expected, 1e-14 * expected);
  EXPECT_LT(largest_difference(dlogits, to_matrix<double>(json.at("gradient"))), 1e-15);
  Matrix<float> single;
  EXPECT_NEAR(
      sigmoid_cross_entropy<float>(Cpu{1}, to_matrix<float>(json.at("logits")), labels, scale, single),
      expected, 1e-6 * expected);
  EXPECT_LT(largest_difference(single, to_matrix<double>(json.at("gradient"))), 1e-7);
}

TEST(SigmoidCrossEntropy, TheGradientIsTheSlopeOfTheLoss) {
  constexpr double kStep = 1e-6;
  for (const double z : {-30.0, -2.5, -1e-3, 0.0, 0.7, 4.0, 33.0})
    for (const std::uint8_t label : {0, 1}) {
      const double slope =
          (label_loss(z + kStep, label).loss - label_loss(z - kStep, label).loss) / (2 * kStep);
      EXPECT_NEAR(label_loss(z, label).gradient, slope, 1e-8) << z << " " << int{label};
    }
}

TEST(SigmoidCrossEntropy, ThreadsDoNotMatter) {
  std::mt19937_64 random(test_seed(2));
  const auto logits = random_matrix<float>(1000, 13, random);
  std::vector<std::uint8_t> labels(logits.data.size());
  for (auto& label : labels) label = random() % 9 == 0 ? 255 : random() % 2;
  Matrix<float> one, many;
  const double loss = sigmoid_cross_entropy<float>(Cpu{1}, logits, labels, 1, one);
  for (const int threads : {2, 3}) {
    EXPECT_EQ(sigmoid_cross_entropy<float>(Cpu{threads}, logits, labels, 1, many), loss);
    EXPECT_TRUE(same_bits(one, many));
  }
}

}  // namespace
}  // namespace espalier
