#include "espalier/nn/normalization.hpp"

#include <algorithm>
#include <cmath>

#include "espalier/base/error.hpp"
#include "espalier/dense/column_sums.hpp"
#include "row_sum.hpp"

namespace espalier {

namespace {

/// Divides by the number of rows; no rows give zeros.
void divide(std::span<double> sums, std::int64_t rows) {
  for (double& sum : sums) sum = rows > 0 ? sum / static_cast<double>(rows) : 0.0;
}

/// Valid until the next call, as what column_variances returns is.
template <class T>
std::span<const double> column_means(const Cpu& cpu, const Matrix<T>& z) {
  const auto means = workspace<struct ColumnMeans, double>(static_cast<std::size_t>(z.columns));
  sum_over_rows(cpu, z.rows, means, [&](std::int64_t i, double* sum) {
    for (std::int64_t j = 0; j < z.columns; ++j) sum[j] += static_cast<double>(z.row(i)[j]);
  });
  divide(means, z.rows);
  return means;
}

/// Biased; from the deviations, not from the squares, which would cancel.
template <class T>
std::span<const double> column_variances(const Cpu& cpu, const Matrix<T>& z, std::span<const double> means) {
  const auto variances = workspace<struct ColumnVariances, double>(means.size());
  sum_over_rows(cpu, z.rows, variances, [&](std::int64_t i, double* sum) {
    for (std::int64_t j = 0; j < z.columns; ++j) {
      const double deviation = static_cast<double>(z.row(i)[j]) - means[j];
      sum[j] += deviation * deviation;
    }
  });
  divide(variances, z.rows);
  return variances;
}

}  // namespace

template <class T>
void batch_norm_forward(const Cpu& cpu, Matrix<T>& z, const Matrix<T>& scale, const Matrix<T>& shift,
                        Matrix<T>& output, Matrix<T>& inverse_deviation, Matrix<T>& mean,
                        Matrix<T>& unbiased_variance) {
  const auto means = column_means(cpu, z), variances = column_variances(cpu, z, means);
  const double unbias =
      static_cast<double>(z.rows) / static_cast<double>(std::max<std::int64_t>(z.rows - 1, 1));
  inverse_deviation.resize(1, z.columns);
  for (std::size_t j = 0; j < means.size(); ++j) {
    mean.data[j] = static_cast<T>(means[j]);
    unbiased_variance.data[j] = static_cast<T>(variances[j] * unbias);
    inverse_deviation.data[j] = inverse_deviation_of<T>(variances[j]);
  }
  output.resize(z.rows, z.columns);
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (z.rows > 64)
  for (std::int64_t i = 0; i < z.rows; ++i) {
    T *x = z.row(i), *y = output.row(i);
    for (std::int64_t j = 0; j < z.columns; ++j) {
      x[j] = (x[j] - mean.row(0)[j]) * inverse_deviation.row(0)[j];
      y[j] = scale.row(0)[j] * x[j] + shift.row(0)[j];
    }
  }
}

template <class T>
void batch_norm_backward(const Cpu& cpu, const Matrix<T>& normalized, const Matrix<T>& inverse_deviation,
                         const Matrix<T>& scale, Matrix<T>& gradient, Matrix<T>& dscale, Matrix<T>& dshift) {
  const std::int64_t rows = gradient.rows, width = gradient.columns;
  const auto sums = sum_scale_and_shift(cpu, normalized, gradient, dscale, dshift);
  divide(sums, rows);
  const MatrixView<T> means(2, width, workspace<struct GradientMeans, T>(sums.size()).data());
  for (std::size_t k = 0; k < sums.size(); ++k) means.data[k] = static_cast<T>(sums[k]);
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (rows > 64)
  for (std::int64_t i = 0; i < rows; ++i) {
    T* d = gradient.row(i);
    const T* x = normalized.row(i);
    for (std::int64_t j = 0; j < width; ++j)
      d[j] =
          scale.row(0)[j] * inverse_deviation.row(0)[j] * (d[j] - means.row(1)[j] - x[j] * means.row(0)[j]);
  }
}

template <class T>
void batch_norm_evaluate(const Cpu& cpu, const Matrix<T>& mean, const Matrix<T>& variance,
                         const Matrix<T>& scale, const Matrix<T>& shift, Matrix<T>& z) {
  const auto inverse_deviation = workspace<struct InverseDeviations, T>(static_cast<std::size_t>(z.columns));
  for (std::int64_t j = 0; j < z.columns; ++j)
    inverse_deviation[j] = inverse_deviation_of<T>(static_cast<double>(variance.row(0)[j]));
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (z.rows > 64)
  for (std::int64_t i = 0; i < z.rows; ++i) {
    T* x = z.row(i);
    for (std::int64_t j = 0; j < z.columns; ++j)
      x[j] = scale.row(0)[j] * ((x[j] - mean.row(0)[j]) * inverse_deviation[j]) + shift.row(0)[j];
  }
}

#define ESPALIER_INSTANTIATE(T)                                                                          \
  template void batch_norm_forward<T>(const Cpu&, Matrix<T>&, const Matrix<T>&, const Matrix<T>&,        \
                                      Matrix<T>&, Matrix<T>&, Matrix<T>&, Matrix<T>&);                   \
  template void batch_norm_backward<T>(const Cpu&, const Matrix<T>&, const Matrix<T>&, const Matrix<T>&, \
                                       Matrix<T>&, Matrix<T>&, Matrix<T>&);                              \
  template void batch_norm_evaluate<T>(const Cpu&, const Matrix<T>&, const Matrix<T>&, const Matrix<T>&, \
                                       const Matrix<T>&, Matrix<T>&);
ESPALIER_INSTANTIATE(float)
ESPALIER_INSTANTIATE(double)
#undef ESPALIER_INSTANTIATE

namespace {

/// The mean of term(0) .. term(width - 1), added in eight interleaved sums so that the adder is not
/// waited for.
template <class Term>
double mean_of(std::int64_t width, const Term& term) {
  double sums[8] = {};
  std::int64_t j = 0;
  for (; j + 8 <= width; j += 8)
    for (int k = 0; k < 8; ++k) sums[k] += static_cast<double>(term(j + k));
  for (; j < width; ++j) sums[j % 8] += static_cast<double>(term(j));
  const double sum =
      ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
  return sum / static_cast<double>(width);
}

/// z becomes x^, y = scale x^ + shift (y may be z). Returns 1 / sqrt(variance + eps).
template <class T>
T normalize_row(std::int64_t width, const T* scale, const T* shift, T* z, T* y) {
  const double mean = mean_of(width, [&](std::int64_t j) { return z[j]; });
  const double variance = mean_of(width, [&](std::int64_t j) {
    const double deviation = static_cast<double>(z[j]) - mean;
    return deviation * deviation;
  });
  const T inverse = inverse_deviation_of<T>(variance), center = static_cast<T>(mean);
  for (std::int64_t j = 0; j < width; ++j) z[j] = (z[j] - center) * inverse;
  for (std::int64_t j = 0; j < width; ++j) y[j] = scale[j] * z[j] + shift[j];
  return inverse;
}

/// d = dy becomes dz.
template <class T>
void backward_row(std::int64_t width, const T* scale, const T* normalized, T inverse, T* d) {
  for (std::int64_t j = 0; j < width; ++j) d[j] *= scale[j];
  const auto mean = static_cast<T>(mean_of(width, [&](std::int64_t j) { return d[j]; }));
  const auto correlation =
      static_cast<T>(mean_of(width, [&](std::int64_t j) { return d[j] * normalized[j]; }));
  for (std::int64_t j = 0; j < width; ++j) d[j] = (d[j] - mean - normalized[j] * correlation) * inverse;
}

}  // namespace

template <class T>
void layer_norm_forward(const Cpu& cpu, Matrix<T>& z, const Matrix<T>& scale, const Matrix<T>& shift,
                        Matrix<T>& output, Matrix<T>& inverse_deviation) {
  output.resize(z.rows, z.columns);
  inverse_deviation.resize(z.rows, 1);
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (z.rows > 64)
  for (std::int64_t i = 0; i < z.rows; ++i)
    inverse_deviation.row(i)[0] =
        normalize_row(z.columns, scale.row(0), shift.row(0), z.row(i), output.row(i));
}

template <class T>
void layer_norm_backward(const Cpu& cpu, const Matrix<T>& normalized, const Matrix<T>& inverse_deviation,
                         const Matrix<T>& scale, Matrix<T>& gradient, Matrix<T>& dscale, Matrix<T>& dshift) {
  const std::int64_t rows = gradient.rows, width = gradient.columns;
  sum_scale_and_shift(cpu, normalized, gradient, dscale, dshift);
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (rows > 64)
  for (std::int64_t i = 0; i < rows; ++i)
    backward_row(width, scale.row(0), normalized.row(i), inverse_deviation.row(i)[0], gradient.row(i));
}

template <class T>
void layer_norm_evaluate(const Cpu& cpu, const Matrix<T>& scale, const Matrix<T>& shift, Matrix<T>& z) {
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (z.rows > 64)
  for (std::int64_t i = 0; i < z.rows; ++i)
    normalize_row(z.columns, scale.row(0), shift.row(0), z.row(i), z.row(i));
}

#define ESPALIER_INSTANTIATE(T)                                                                          \
  template void layer_norm_forward<T>(const Cpu&, Matrix<T>&, const Matrix<T>&, const Matrix<T>&,        \
                                      Matrix<T>&, Matrix<T>&);                                           \
  template void layer_norm_backward<T>(const Cpu&, const Matrix<T>&, const Matrix<T>&, const Matrix<T>&, \
                                       Matrix<T>&, Matrix<T>&, Matrix<T>&);                              \
  template void layer_norm_evaluate<T>(const Cpu&, const Matrix<T>&, const Matrix<T>&, Matrix<T>&);
ESPALIER_INSTANTIATE(float)
ESPALIER_INSTANTIATE(double)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
