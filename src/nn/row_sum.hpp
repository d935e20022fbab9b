// Gradients that are sums over rows: of a bias, and of the scale and shift of a normalisation.
#pragma once

#include "espalier/base/buffer.hpp"
#include "espalier/base/execution.hpp"
#include "espalier/dense/column_sums.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/nn/views.hpp"

namespace espalier {

/// sum [1, columns] = the sum over the rows of dz [rows, columns], added in double.
template <class T, class Space>
void sum_rows(const Space&, ConstViewOn<Space, T> dz, MatrixOn<Space, T>& sum);

/// gradient_ij = update(i, j, gradient_ij); unless `sums` [1, columns] is null, it becomes the sums
/// over the rows. The CUDA implementation is in device_row_sum.hpp.
template <class T, class Update>
void update_and_sum(const Cpu& cpu, MatrixView<T> gradient, Matrix<T>* sums, const Update& update) {
  for_each_in_rows(cpu, "update", gradient.rows, gradient.columns,
                   [=](std::int64_t i, std::int64_t j) { gradient(i, j) = update(i, j, gradient(i, j)); });
  if (sums != nullptr) sum_rows<T>(cpu, gradient, *sums);
}

/// Of y = scale x^ + shift, row by row: dscale_j = sum_i dy_ij x^_ij and dshift_j = sum_i dy_ij,
/// both [1, columns]. Returns the same sums in double, [2 * columns], dscale first, valid until the
/// next call.
template <class T>
std::span<double> sum_scale_and_shift(const Cpu& cpu, const Matrix<T>& normalized, const Matrix<T>& dy,
                                      Matrix<T>& dscale, Matrix<T>& dshift) {
  const std::int64_t width = dy.columns;
  const auto sums = workspace<struct ScaleAndShiftSums, double>(static_cast<std::size_t>(2 * width));
  sum_over_rows(cpu, dy.rows, sums, [&](std::int64_t i, double* sum) {
    for (std::int64_t j = 0; j < width; ++j) {
      const auto d = static_cast<double>(dy.row(i)[j]);
      sum[j] += d * static_cast<double>(normalized.row(i)[j]);
      sum[width + j] += d;
    }
  });
  for (std::int64_t j = 0; j < width; ++j) {
    dscale.row(0)[j] = static_cast<T>(sums[j]);
    dshift.row(0)[j] = static_cast<T>(sums[width + j]);
  }
  return sums;
}

}  // namespace espalier
