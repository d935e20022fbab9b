#include "espalier/nn/batch_norm.hpp"

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

}  // namespace espalier
