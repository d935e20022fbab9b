// The sums of a normalisation's scale and shift on a GPU, with what is to become of them. For .cu
// files only.
#pragma once

#include "espalier/dense/device_column_sums.hpp"

namespace espalier {

/// finish(j, sum over i of dy_ij x^_ij) and finish(width + j, sum over i of dy_ij) for every column
/// j < width.
template <class Finish>
void sum_scale_and_shift(const Cuda& cuda, const Matrix<float, Cuda>& normalized,
                         const Matrix<float, Cuda>& dy, const Finish& finish) {
  const float *const x = normalized.data.data(), *const above = dy.data.data();
  const std::int64_t width = dy.columns;
  sum_over_rows(
      cuda, dy.rows, 2 * width,
      [=] __device__(std::int64_t i, std::int64_t j) {
        return j < width ? static_cast<double>(above[i * width + j]) * static_cast<double>(x[i * width + j])
                         : static_cast<double>(above[i * width + j - width]);
      },
      finish);
}

}  // namespace espalier
