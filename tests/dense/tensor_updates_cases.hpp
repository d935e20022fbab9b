// Laws of dense/tensor_updates.hpp, for a space.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "espalier/base/arrays.hpp"
#include "espalier/dense/tensor_updates.hpp"

namespace espalier {

/// Matrices of awkward sizes: of no, one, a piece's and more elements.
inline std::vector<Matrix<float>> awkward_matrices(float scale) {
  std::mt19937_64 random(3);
  std::normal_distribution<float> number(0, scale);
  std::vector<Matrix<float>> all;
  for (const auto& [rows, columns] : {std::pair{0, 4}, {1, 1}, {16, 16}, {3, 257}, {70, 33}}) {
    auto& matrix = all.emplace_back(rows, columns);
    for (auto& value : matrix.data) value = number(random);
  }
  return all;
}

inline long double norm_of(const std::vector<Matrix<float>>& matrices) {
  long double sum = 0;
  for (const auto& matrix : matrices)
    for (const float value : matrix.data) sum += static_cast<long double>(value) * value;
  return std::sqrt(sum);
}

/// clip(most, matrices) in the space, and back. Results, for another space to compare with.
template <class Clip>
std::vector<Matrix<float>> check_clipping(const Clip& clip) {
  std::vector<Matrix<float>> results;
  for (const float scale : {1e-20f, 0.3f, 1e15f}) {
    const auto whole = awkward_matrices(scale);
    const long double norm = norm_of(whole);
    for (const double share : {0.0, 1e-3, 0.999, 1.0001, 1e9}) {
      const auto most = static_cast<double>(share * norm);
      const auto clipped = clip(most, whole);
      const long double factor = std::min<long double>(1, most / (norm + 1e-6L));
      for (std::size_t m = 0; m < whole.size(); ++m)
        for (std::size_t k = 0; k < whole[m].data.size(); ++k) {
          const long double expected = factor * static_cast<long double>(whole[m].data[k]);
          EXPECT_NEAR(clipped[m].data[k], expected,
                      1e-7L * std::abs(expected) + std::numeric_limits<float>::denorm_min());
          if (factor == 1) EXPECT_EQ(clipped[m].data[k], whole[m].data[k]);
        }
      if (share < 1 && norm > 1) EXPECT_LE(norm_of(clipped), most * (1 + 1e-6));
      for (const auto& matrix : clipped) results.push_back(matrix);
    }
  }
  auto broken = awkward_matrices(1);
  broken[2].data[7] = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isnan(clip(1.0, broken)[2].data[7])) << "what is not finite stays so";
  return results;
}

/// blend(share, from, to) in the space, and back: steps of a running mean.
template <class Blend>
void check_blending(const Blend& blend) {
  const auto all = awkward_matrices(1);
  auto to = all[4], from = all[4];
  for (auto& value : from.data) value = 3 - 2 * value;
  for (const double share : {0.0, 0.1, 0.999, 1.0}) {
    const auto before = to;
    to = blend(share, from, to);
    for (std::size_t k = 0; k < to.data.size(); ++k)
      EXPECT_EQ(to.data[k], static_cast<float>((1 - share) * static_cast<double>(before.data[k]) +
                                               share * static_cast<double>(from.data[k])));
  }
  EXPECT_EQ(to.data, from.data) << "all of it was taken";
}

/// What weigh(divisor, mean, at) gives: the sum, and three divisors, which were 0.
struct Weighed {
  Matrix<float> sum, divisors;
};

/// Both in the space, and back.
template <class Weigh, class BlendMean>
void check_weighted_means(const Weigh& weigh, const BlendMean& blend_mean) {
  const auto all = awkward_matrices(1);
  const auto& mean = all[4];
  const Weighed weighed = weigh(0.75, mean, 1);
  EXPECT_EQ(weighed.divisors.data, (Buffer<float>{0, 0.75f, 0}));
  for (std::size_t k = 0; k < mean.data.size(); ++k) EXPECT_EQ(weighed.sum.data[k], 0.75f * mean.data[k]);
  auto from = mean;
  for (auto& value : from.data) value = 3 - 2 * value;
  EXPECT_EQ(blend_mean(0.1, weighed.sum, weighed.divisors, 0, from).data, from.data) << "a divisor of 0";
  const auto to = blend_mean(0.1, weighed.sum, weighed.divisors, 1, from);
  for (std::size_t k = 0; k < to.data.size(); ++k)
    EXPECT_EQ(to.data[k], static_cast<float>((1 - 0.1) * static_cast<double>(from.data[k]) +
                                             0.1 * (static_cast<double>(weighed.sum.data[k]) / 0.75)));
}

}  // namespace espalier
