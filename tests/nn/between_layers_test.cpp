// ranks: 1
// Laws of what stands between and around layers (activation.hpp, jumping.hpp, own_rows.hpp), beside
// those of layer_test.cpp: ELU, hand-checked; the gradient of an activation with dropout is the
// derivative; the largest of layers is the first that has it, and NaN stays; sums of own rows are
// added in double.
#include <gtest/gtest.h>

#include <cmath>

#include "dense/random_matrices.hpp"
#include "espalier/base/error.hpp"
#include "espalier/nn/between_layers.hpp"
#include "espalier/nn/own_rows.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

TEST(BetweenLayers, EluHandChecked) {
  auto h = matrix_of<double>(1, 6, {2, 0, -0.0, -std::log(4.0), -1e9, NAN});
  elu<double>(Cpu{1}, h);
  EXPECT_EQ(h.data[0], 2);
  EXPECT_EQ(h.data[1], 0);
  EXPECT_EQ(h.data[2], 0);
  EXPECT_DOUBLE_EQ(h.data[3], -0.75);
  EXPECT_EQ(h.data[4], -1);
  EXPECT_TRUE(std::isnan(h.data[5]));
  for (double& x : h.data) x *= 2;  // what dropout makes of what it keeps
  auto gradient = matrix_of<double>(1, 6, {3, 3, 3, 8, 3, 3});
  elu_backward<double>(Cpu{1}, h, 2, gradient);
  EXPECT_EQ(gradient.data[0], 3);
  EXPECT_EQ(gradient.data[1], 3);
  EXPECT_EQ(gradient.data[2], 3);
  EXPECT_DOUBLE_EQ(gradient.data[3], 2);
  EXPECT_EQ(gradient.data[4], 0);
  EXPECT_TRUE(std::isnan(gradient.data[5]));
  auto tiny = matrix_of<float>(1, 1, {-1e-20f});  // exp(x) - 1 would lose it
  elu<float>(Cpu{1}, tiny);
  EXPECT_FLOAT_EQ(tiny.data[0], -1e-20f);
}

TEST(BetweenLayers, GradientsOfActivationsAreDerivatives) {
  std::mt19937_64 random(test_seed(3));
  const RandomStream mask{7, Purpose::kDropout, 2, 5, 1, 0};
  for (const auto f : {Activation::kRelu, Activation::kElu})
    for (const double rate : {0.0, 0.4}) {
      const auto x = random_matrix<double>(9, 21, random);
      auto h = x, gradient = random_matrix<double>(9, 21, random), above = x, below = x;
      const auto of_result = gradient;
      constexpr double kStep = 1e-6;
      for (double& value : above.data) value += kStep;
      for (double& value : below.data) value -= kStep;
      for (auto* m : {&h, &above, &below}) activate<double>(Cpu{1}, f, mask, rate, *m);
      Matrix<double> sums(1, 21);
      activate_backward<double>(Cpu{1}, f, mask, rate, h, gradient, &sums);
      int dropped = 0;
      for (std::size_t e = 0; e < x.data.size(); ++e) {
        EXPECT_NEAR(gradient.data[e], of_result.data[e] * (above.data[e] - below.data[e]) / (2 * kStep),
                    1e-8);
        dropped += h.data[e] == 0 && (f == Activation::kElu || x.data[e] > 0);
      }
      EXPECT_EQ(dropped > 0, rate > 0);
      for (std::int64_t j = 0; j < 21; ++j) {
        double sum = 0;
        for (std::int64_t i = 0; i < 9; ++i) sum += gradient(i, j);
        EXPECT_EQ(sums(0, j), sum) << "a bias's gradient";
      }
    }
}

TEST(BetweenLayers, TheFirstOfTheLargestLayersCounts) {
  Matrix<double> j(1, 6);
  Buffer<std::int32_t> winners;
  std::ranges::fill(j.data, 1e9);  // of another minibatch
  take_larger<double>(Cpu{1}, matrix_of<double>(1, 6, {1, 2, 0, NAN, 5, -3}), 1, j, winners);
  take_larger<double>(Cpu{1}, matrix_of<double>(1, 6, {3, 2, -1, 7, NAN, -2}), 2, j, winners);
  take_larger<double>(Cpu{1}, matrix_of<double>(1, 6, {2, 2, 4, 9, 9, -2}), 3, j, winners);
  EXPECT_EQ(winners, (Buffer<std::int32_t>{2, 1, 3, 1, 2, 2}));
  EXPECT_TRUE(std::isnan(j.data[3]) && std::isnan(j.data[4]));
  EXPECT_EQ(j.data[0], 3);
  EXPECT_EQ(j.data[2], 4);
  auto gradient = matrix_of<double>(1, 6, {10, 10, 10, 10, 10, 10});
  add_where_larger<double>(Cpu{1}, matrix_of<double>(1, 6, {1, 2, 3, 4, 5, 6}), 2, winners, gradient);
  EXPECT_EQ(gradient.data, (Buffer<double>{11, 10, 10, 10, 15, 16}));
}

TEST(BetweenLayers, ProductsOfOwnRowsAreAddedInDouble) {
  Matrix<float> rounded(1, 1);
  product_of_own_rows<float>(Cpu{1}, matrix_of<float>(3, 1, {0x1p30f, 1, 0x1p30f}),
                             matrix_of<float>(3, 1, {1, 1, -1}), rounded);
  EXPECT_EQ(rounded.data[0], 1);
}

}  // namespace
}  // namespace espalier
