// ranks: 1
// Laws: loss and gradient are PyTorch's CrossEntropyLoss with weights and label smoothing; without
// them they are those of plain cross-entropy; rows without a label count for nothing; gradients of
// a row sum to 0; threads do not matter.
#include "espalier/nn/weighted_cross_entropy.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "dense/random_matrices.hpp"
#include "espalier/nn/softmax_cross_entropy.hpp"
#include "mpi_test.hpp"
#include "oracle/fixture.hpp"

namespace espalier {
namespace {

TEST(WeightedCrossEntropy, AgreesWithPyTorch) {
  for (const auto& json : read_fixture("task_losses").at("classes")) {
    const auto labels = json.at("labels").get<std::vector<std::int32_t>>();
    auto weights = json.at("weights").get<std::vector<double>>();
    if (weights.empty()) weights.assign(5, 1.0);
    const double expected = json.at("loss"), scale = json.at("scale"), smoothing = json.at("smoothing");
    Matrix<double> dlogits;
    const double loss = weighted_cross_entropy<double>(Cpu{1}, to_matrix<double>(json.at("logits")), labels,
                                                       weights, smoothing, scale, dlogits);
    EXPECT_NEAR(loss, expected, 1e-14 * expected);
    EXPECT_LT(largest_difference(dlogits, to_matrix<double>(json.at("gradient"))), 1e-14);
    Matrix<float> single;
    EXPECT_NEAR(weighted_cross_entropy<float>(Cpu{1}, to_matrix<float>(json.at("logits")), labels, weights,
                                              smoothing, scale, single),
                expected, 1e-6 * expected);
    EXPECT_LT(largest_difference(single, to_matrix<double>(json.at("gradient"))), 1e-6);
    double sum = 0;
    for (const auto label : labels) sum += label < 0 ? 0 : weights[static_cast<std::size_t>(label)];
    EXPECT_NEAR(loss / sum, json.at("mean").get<double>(), 1e-14 * expected) << "what a mean divides by";
  }
}

TEST(WeightedCrossEntropy, IsThePlainOneWithoutWeightsAndSmoothing) {
  std::mt19937_64 random(test_seed(1));
  const auto logits = random_matrix<double>(40, 6, random);
  std::vector<std::int32_t> labels(40);
  for (auto& label : labels) label = static_cast<std::int32_t>(random() % 7) - 1;
  Matrix<double> plain, weighted;
  const double loss = softmax_cross_entropy<double>(Cpu{1}, logits, labels, 0.5, plain);
  EXPECT_NEAR(
      weighted_cross_entropy<double>(Cpu{1}, logits, labels, std::vector<double>(6, 1.0), 0, 0.5, weighted),
      loss, 1e-13 * loss);
  EXPECT_LT(largest_difference(weighted, plain), 1e-15);
}

TEST(WeightedCrossEntropy, ThreadsDoNotMatterAndGradientsSumToZero) {
  std::mt19937_64 random(test_seed(2));
  const auto logits = random_matrix<float>(1000, 47, random);
  std::vector<std::int32_t> labels(1000);
  for (auto& label : labels) label = static_cast<std::int32_t>(random() % 48) - 1;
  std::vector<double> weights(47);
  for (auto& weight : weights) weight = static_cast<double>(random() % 9) / 4;
  Matrix<float> one, many;
  const double loss = weighted_cross_entropy<float>(Cpu{1}, logits, labels, weights, 0.2, 1, one);
  for (const int threads : {2, 3}) {
    EXPECT_EQ(weighted_cross_entropy<float>(Cpu{threads}, logits, labels, weights, 0.2, 1, many), loss);
    EXPECT_TRUE(same_bits(one, many));
  }
  for (std::int64_t i = 0; i < 1000; ++i)
    EXPECT_NEAR(std::accumulate(one.row(i), one.row(i) + 47, 0.0), 0, 1e-6);
}

}  // namespace
}  // namespace espalier
