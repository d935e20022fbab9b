// ranks: 1
// Laws of what stands between and around layers (activation.hpp, jumping.hpp, own_rows.hpp):
// hand-checked; the gradient of an activation with dropout is the derivative; the largest of layers
// is the first that has it, and NaN stays; sums of own rows are added in double; threads change no
// bit.
#include <gtest/gtest.h>

#include <cmath>

#include "dense/random_matrices.hpp"
#include "espalier/base/error.hpp"
#include "espalier/nn/activation.hpp"
#include "espalier/nn/jumping.hpp"
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

TEST(BetweenLayers, LayersStandSideBySide) {
  auto j = filled_matrix(2, 5, -1.0);
  place_columns<double>(Cpu{1}, matrix_of<double>(2, 2, {1, 2, 3, 4}), 0, j);
  place_columns<double>(Cpu{1}, matrix_of<double>(2, 2, {5, 6, 7, 8}), 3, j);
  EXPECT_EQ(j.data, (Buffer<double>{1, 2, -1, 5, 6, 3, 4, -1, 7, 8}));
  auto gradient = matrix_of<double>(2, 2, {100, 200, 300, 400});
  add_columns<double>(Cpu{1}, j, 3, gradient);
  EXPECT_EQ(gradient.data, (Buffer<double>{105, 206, 307, 408}));
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

TEST(BetweenLayers, OwnRowsHandChecked) {
  const auto x = matrix_of<double>(2, 2, {1, 2, 3, 4}), eps = matrix_of<double>(1, 1, {0.5});
  auto y = matrix_of<double>(2, 2, {10, 20, 30, 40});
  add_rows<double>(Cpu{1}, x, y);
  EXPECT_EQ(y.data, (Buffer<double>{11, 22, 33, 44}));
  add_own_rows<double>(Cpu{1}, eps, x, y);
  EXPECT_EQ(y.data, (Buffer<double>{12.5, 25, 37.5, 50}));
  Matrix<double> sum(1, 1);
  product_of_own_rows<double>(Cpu{1}, x, y, sum);
  EXPECT_EQ(sum.data[0], 12.5 + 50 + 3 * 37.5 + 200);
  Matrix<float> rounded(1, 1);
  product_of_own_rows<float>(Cpu{1}, matrix_of<float>(3, 1, {0x1p30f, 1, 0x1p30f}),
                             matrix_of<float>(3, 1, {1, 1, -1}), rounded);
  EXPECT_EQ(rounded.data[0], 1) << "added in double";
}

TEST(BetweenLayers, ThreadsDoNotMatter) {
  std::mt19937_64 random(test_seed(4));
  const auto x = random_matrix<float>(2000, 37, random), y = random_matrix<float>(2000, 37, random),
             eps = random_matrix<float>(1, 1, random);
  const auto results = [&](int threads) {
    const Cpu cpu{threads};
    std::vector<Matrix<float>> all = {x, y, y, y, Matrix<float>(1, 1)};
    elu<float>(cpu, all[0]);
    elu_backward<float>(cpu, all[0], 1.5f, all[1]);
    add_rows<float>(cpu, x, all[2]);
    add_own_rows<float>(cpu, eps, x, all[3]);
    product_of_own_rows<float>(cpu, x, y, all[4]);
    return all;
  };
  const auto one = results(1);
  for (const int threads : {2, 5}) {
    const auto many = results(threads);
    for (std::size_t k = 0; k < one.size(); ++k) EXPECT_TRUE(same_bits(many[k], one[k])) << k;
  }
}

TEST(BetweenLayers, RefusesNamesThatAreNone) {
  EXPECT_EQ(activation_of("elu"), Activation::kElu);
  EXPECT_EQ(activation_of("relu"), Activation::kRelu);
  EXPECT_THROW(activation_of("ELU"), UserError);
  EXPECT_EQ(jumping_of("concat"), Jumping::kConcat);
  EXPECT_THROW(jumping_of("mean"), UserError);
}

}  // namespace
}  // namespace espalier
