// ranks: 1
// Laws of cross-entropies over classes (plain, and with weights and label smoothing) and over
// labels: loss and gradient are PyTorch's, also where exponentials overflow; what has no label
// counts for nothing; gradients are the slope of the loss, those of a row of classes add up to 0;
// without weights and smoothing the weighted one is the plain one; threads do not matter.
#include <gtest/gtest.h>

#include <numeric>

#include "dense/random_matrices.hpp"
#include "espalier/nn/cross_entropy.hpp"
#include "mpi_test.hpp"
#include "oracle/fixture.hpp"

namespace espalier {
namespace {

/// `loss(logits, dlogits)` in double and in float32. Returns it in double.
template <class Loss>
double expect_loss_of_pytorch(const nlohmann::json& json, double gradient_tolerance, double single_tolerance,
                              const Loss& loss) {
  const double expected = json.at("loss");
  const auto gradient = to_matrix<double>(json.at("gradient"));
  Matrix<double> dlogits;
  Matrix<float> single;
  const double found = loss(to_matrix<double>(json.at("logits")), dlogits);
  EXPECT_NEAR(found, expected, 1e-14 * expected);
  EXPECT_LT(largest_difference(dlogits, gradient), gradient_tolerance);
  EXPECT_NEAR(loss(to_matrix<float>(json.at("logits")), single), expected, 1e-6 * expected);
  EXPECT_LT(largest_difference(single, gradient), single_tolerance);
  return found;
}

TEST(SoftmaxCrossEntropy, AgreesWithPyTorch) {
  const auto json = read_fixture("losses");
  const auto labels = json.at("labels").get<std::vector<std::int32_t>>();
  const double scale = json.at("scale");
  expect_loss_of_pytorch(json, 1e-15, 1e-7, [&]<class T>(const Matrix<T>& logits, Matrix<T>& dlogits) {
    return softmax_cross_entropy<T>(Cpu{1}, logits, labels, scale, dlogits);
  });
}

TEST(SigmoidCrossEntropy, AgreesWithPyTorch) {
  const auto json = read_fixture("task_losses").at("labels");
  const auto labels = json.at("labels").get<std::vector<std::uint8_t>>();
  const double scale = json.at("scale");
  expect_loss_of_pytorch(json, 1e-15, 1e-7, [&]<class T>(const Matrix<T>& logits, Matrix<T>& dlogits) {
    return sigmoid_cross_entropy<T>(Cpu{1}, logits, labels, scale, dlogits);
  });
}

TEST(WeightedCrossEntropy, AgreesWithPyTorch) {
  const auto fixture = read_fixture("task_losses").at("classes");
  ASSERT_GE(fixture.size(), 2u);
  for (const auto& json : fixture) {
    const auto labels = json.at("labels").get<std::vector<std::int32_t>>();
    auto weights = json.at("weights").get<std::vector<double>>();
    if (weights.empty()) weights.assign(5, 1.0);
    const double scale = json.at("scale"), smoothing = json.at("smoothing");
    const double loss =
        expect_loss_of_pytorch(json, 1e-14, 1e-6, [&]<class T>(const Matrix<T>& logits, Matrix<T>& dlogits) {
          return weighted_cross_entropy<T>(Cpu{1}, logits, labels, weights, smoothing, scale, dlogits);
        });
    double sum = 0;
    for (const auto label : labels) sum += label < 0 ? 0 : weights[static_cast<std::size_t>(label)];
    EXPECT_NEAR(loss / sum, json.at("mean").get<double>(), 1e-14 * json.at("loss").get<double>())
        << "what a mean divides by";
  }
}

TEST(SoftmaxCrossEntropy, RowsWithoutALabelCountForNothing) {
  std::mt19937_64 random(test_seed(1));
  const auto logits = random_matrix<float>(3, 6, random);
  Matrix<float> dlogits, alone(1, 6), dalone;
  std::copy_n(logits.row(1), 6, alone.row(0));
  EXPECT_EQ(softmax_cross_entropy<float>(Cpu{1}, logits, std::vector{-1, 4, -1}, 1, dlogits),
            softmax_cross_entropy<float>(Cpu{1}, alone, std::vector{4}, 1, dalone));
  for (std::int64_t j = 0; j < 6; ++j) {
    EXPECT_EQ(dlogits(0, j), 0);
    EXPECT_EQ(dlogits(1, j), dalone(0, j));
  }
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

std::vector<std::int32_t> random_classes(std::int64_t rows, std::uint64_t classes, bool all_known,
                                         std::mt19937_64& random) {
  std::vector<std::int32_t> labels(static_cast<std::size_t>(rows));
  for (auto& label : labels)
    label = static_cast<std::int32_t>(random() % (all_known ? classes : classes + 1)) - (all_known ? 0 : 1);
  return labels;
}

TEST(WeightedCrossEntropy, IsThePlainOneWithoutWeightsAndSmoothing) {
  std::mt19937_64 random(test_seed(1));
  const auto logits = random_matrix<double>(40, 6, random);
  const auto labels = random_classes(40, 6, false, random);
  Matrix<double> plain, weighted;
  const double loss = softmax_cross_entropy<double>(Cpu{1}, logits, labels, 0.5, plain);
  EXPECT_NEAR(
      weighted_cross_entropy<double>(Cpu{1}, logits, labels, std::vector<double>(6, 1.0), 0, 0.5, weighted),
      loss, 1e-13 * loss);
  EXPECT_LT(largest_difference(weighted, plain), 1e-15);
}

/// `loss(cpu, logits, dlogits)`. Returns the gradients.
template <class Loss>
Matrix<float> expect_threads_do_not_matter(const Matrix<float>& logits, const Loss& loss) {
  Matrix<float> one, many;
  const double expected = loss(Cpu{1}, logits, one);
  for (const int threads : {2, 3}) {
    EXPECT_EQ(loss(Cpu{threads}, logits, many), expected);
    EXPECT_TRUE(same_bits(one, many));
  }
  return one;
}

void expect_rows_add_up_to_0(const Matrix<float>& gradients) {
  for (std::int64_t i = 0; i < gradients.rows; ++i)
    EXPECT_NEAR(std::accumulate(gradients.row(i), gradients.row(i) + gradients.columns, 0.0), 0, 1e-6);
}

TEST(CrossEntropies, ThreadsDoNotMatterAndGradientsSumToZero) {
  std::mt19937_64 random(test_seed(2));
  const auto logits = random_matrix<float>(1000, 47, random);
  auto classes = random_classes(1000, 47, true, random);
  expect_rows_add_up_to_0(expect_threads_do_not_matter(logits, [&](const Cpu& cpu, const auto& of, auto& d) {
    return softmax_cross_entropy<float>(cpu, of, classes, 1, d);
  }));
  classes = random_classes(1000, 47, false, random);
  std::vector<double> weights(47);
  for (auto& weight : weights) weight = static_cast<double>(random() % 9) / 4;
  expect_rows_add_up_to_0(expect_threads_do_not_matter(logits, [&](const Cpu& cpu, const auto& of, auto& d) {
    return weighted_cross_entropy<float>(cpu, of, classes, weights, 0.2, 1, d);
  }));
  std::vector<std::uint8_t> labels(logits.data.size());
  for (auto& label : labels) label = random() % 9 == 0 ? 255 : random() % 2;
  expect_threads_do_not_matter(logits, [&](const Cpu& cpu, const auto& of, auto& d) {
    return sigmoid_cross_entropy<float>(cpu, of, labels, 1, d);
  });
}

}  // namespace
}  // namespace espalier
