// ranks: 1
// Laws: loss and gradient are PyTorch's, also for logits whose exponentials overflow; rows without
// a label count for nothing; gradients of a row sum to 0; threads do not matter.
#include "espalier/nn/softmax_cross_entropy.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "dense/random_matrices.hpp"
#include "mpi_test.hpp"
#include "oracle/fixture.hpp"

namespace espalier {
namespace {

TEST(SoftmaxCrossEntropy, HandChecked) {
  Matrix<double> logits(2, 2), dlogits;
  logits.data = {0, std::log(3.0), 5, 5};  // softmax 1/4 3/4, 1/2 1/2
  const std::vector<std::int32_t> labels{1, 0};
  const double loss = softmax_cross_entropy<double>(Cpu{1}, logits, labels, 4.0, dlogits);
  EXPECT_DOUBLE_EQ(loss, std::log(4.0 / 3) + std::log(2.0));
  const double expected[] = {1, -1, -2, 2};
  for (std::size_t e = 0; e < 4; ++e) EXPECT_NEAR(dlogits.data[e], expected[e], 1e-15);
}

TEST(SoftmaxCrossEntropy, AgreesWithPyTorch) {
  const auto json = read_fixture("losses");
  const auto labels = json.at("labels").get<std::vector<std::int32_t>>();
  const double expected = json.at("loss"), scale = json.at("scale");
  Matrix<double> dlogits;
  EXPECT_NEAR(
      softmax_cross_entropy<double>(Cpu{1}, to_matrix<double>(json.at("logits")), labels, scale, dlogits),
      expected, 1e-14 * expected);
  EXPECT_LT(largest_difference(dlogits, to_matrix<double>(json.at("gradient"))), 1e-15);
  Matrix<float> single;
  EXPECT_NEAR(
      softmax_cross_entropy<float>(Cpu{1}, to_matrix<float>(json.at("logits")), labels, scale, single),
      expected, 1e-6 * expected);
  EXPECT_LT(largest_difference(single, to_matrix<double>(json.at("gradient"))), 1e-7);
}

TEST(SoftmaxCrossEntropy, RowsWithoutALabelCountForNothing) {
  std::mt19937_64 random(test_seed(1));
  const auto logits = random_matrix<float>(3, 6, random);
  Matrix<float> dlogits, alone(1, 6), dalone;
  std::copy_n(logits.row(1), 6, alone.row(0));
  const std::vector<std::int32_t> labels{-1, 4, -1}, label{4};
  EXPECT_EQ(softmax_cross_entropy<float>(Cpu{1}, logits, labels, 1, dlogits),
            softmax_cross_entropy<float>(Cpu{1}, alone, label, 1, dalone));
  for (std::int64_t j = 0; j < 6; ++j) {
    EXPECT_EQ(dlogits(0, j), 0);
    EXPECT_EQ(dlogits(1, j), dalone(0, j));
  }
}

TEST(SoftmaxCrossEntropy, ThreadsDoNotMatterAndGradientsSumToZero) {
  std::mt19937_64 random(test_seed(2));
  const auto logits = random_matrix<float>(1000, 47, random);
  std::vector<std::int32_t> labels(1000);
  for (auto& label : labels) label = static_cast<std::int32_t>(random() % 47);
  Matrix<float> one, many;
  const double loss = softmax_cross_entropy<float>(Cpu{1}, logits, labels, 1, one);
  for (const int threads : {2, 3}) {
    EXPECT_EQ(softmax_cross_entropy<float>(Cpu{threads}, logits, labels, 1, many), loss);
    EXPECT_TRUE(same_bits(one, many));
  }
  for (std::int64_t i = 0; i < 1000; ++i)
    EXPECT_NEAR(std::accumulate(one.row(i), one.row(i) + 47, 0.0), 0, 1e-6);
}

}  // namespace
}  // namespace espalier
