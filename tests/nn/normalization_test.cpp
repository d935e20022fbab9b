// ranks: 1
// Laws: normalised columns (batch) or rows (layer) have mean 0 and variance 1; the backward passes
// are the derivatives of the forward passes; evaluation with the minibatch's own statistics is the
// forward pass. Threads: layer_test.cpp; numbers: PyTorch's networks, layer_oracle_test.cpp.
#include <gtest/gtest.h>

#include "dense/random_matrices.hpp"
#include "espalier/nn/normalization.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

/// One normalisation with all it needs and leaves; `f` columns.
template <class T>
struct Normalization {
  bool batch;
  Matrix<T> scale, shift, normalized, inverse, mean, variance;

  Normalization(bool batch_, std::int64_t f, std::mt19937_64& random)
      : batch(batch_),
        scale(random_matrix<T>(1, f, random)),
        shift(random_matrix<T>(1, f, random)),
        mean(1, f),
        variance(1, f) {}
  Matrix<T> forward(const Matrix<T>& z) {
    Matrix<T> y;
    normalized = z;
    if (batch)
      batch_norm_forward<T>(Cpu{1}, normalized, scale, shift, y, inverse, mean, variance);
    else
      layer_norm_forward<T>(Cpu{1}, normalized, scale, shift, y, inverse);
    return y;
  }
  Matrix<T> backward(const Matrix<T>& dy, Matrix<T>& dscale, Matrix<T>& dshift) {
    Matrix<T> gradient = dy;
    dscale.resize(1, dy.columns);
    dshift.resize(1, dy.columns);
    if (batch)
      batch_norm_backward<T>(Cpu{1}, normalized, inverse, scale, gradient, dscale, dshift);
    else
      layer_norm_backward<T>(Cpu{1}, normalized, inverse, scale, gradient, dscale, dshift);
    return gradient;
  }
};

TEST(Normalization, BackwardIsTheDerivativeOfForward) {
  // Of the loss sum(y * above), against central differences: relative error of each gradient's norm
  // below 1e-8.
  for (const bool batch : {true, false})
    for (const std::int64_t rows : {2, 9}) {
      std::mt19937_64 random(test_seed(6));
      const std::int64_t f = 11;
      Normalization<double> norm(batch, f, random);
      auto z = random_matrix<double>(rows, f, random);
      const auto above = random_matrix<double>(rows, f, random);
      const auto loss = [&] {
        const auto y = norm.forward(z);
        double sum = 0;
        for (std::size_t e = 0; e < y.data.size(); ++e) sum += y.data[e] * above.data[e];
        return sum;
      };
      loss();
      Matrix<double> dscale, dshift;
      const auto dz = norm.backward(above, dscale, dshift);
      const auto error = [&](Matrix<double>& variable, const Matrix<double>& analytic) {
        return relative_difference(analytic, numeric_gradient(variable, loss), 0);
      };
      EXPECT_LT(error(z, dz), rows == 2 && batch ? 1e-4 : 1e-8)
          << "two rows: gradients cancel to 1e-5 of their terms";
      EXPECT_LT(error(norm.scale, dscale), 1e-8);
      EXPECT_LT(error(norm.shift, dshift), 1e-8);
    }
}

TEST(Normalization, MeanIsZeroAndVarianceOne) {
  std::mt19937_64 random(test_seed(7));
  auto z = random_matrix<float>(2000, 70, random);
  for (auto& x : z.data) x = 1000 + 5 * x;  // squares would cancel
  Normalization<float> norm(true, 70, random);
  norm.forward(z);
  for (std::int64_t j = 0; j < 70; ++j) {
    double sum = 0, squares = 0;
    for (std::int64_t i = 0; i < 2000; ++i) {
      sum += norm.normalized(i, j);
      squares += norm.normalized(i, j) * norm.normalized(i, j);
    }
    EXPECT_NEAR(sum / 2000, 0, 1e-4);
    EXPECT_NEAR(squares / 2000, 1, 1e-3);
  }
}

TEST(Normalization, EvaluationAgreesWithForward) {
  std::mt19937_64 random(test_seed(8));
  const auto z = random_matrix<double>(30, 12, random);
  Normalization<double> batch(true, 12, random), layer(false, 12, random);
  auto evaluated = z;
  const auto y = batch.forward(z);
  auto biased = batch.variance;
  for (auto& x : biased.data) x *= 29.0 / 30;
  batch_norm_evaluate<double>(Cpu{1}, batch.mean, biased, batch.scale, batch.shift, evaluated);
  EXPECT_LT(largest_difference(evaluated, y), 1e-13);
  evaluated = z;
  layer_norm_evaluate<double>(Cpu{1}, layer.scale, layer.shift, evaluated);
  EXPECT_TRUE(same_bits(evaluated, layer.forward(z)));
  for (const std::int64_t f : {1, 3, 8, 33, 256}) {
    Normalization<float> single(false, f, random);
    const auto rows = random_matrix<float>(33, f, random);
    auto found = rows;
    layer_norm_evaluate<float>(Cpu{1}, single.scale, single.shift, found);
    EXPECT_TRUE(same_bits(found, single.forward(rows))) << f;
  }
}

}  // namespace
}  // namespace espalier
