// Sums over the rows of gradients on a GPU, with what is to become of them or of their terms. For
// .cu files only.
#pragma once

#include "espalier/dense/device_column_sums.hpp"

namespace espalier {

/// dy_ij x^_ij and dy_ij, or their sums.
struct ScaleAndShift {
  double scale, shift;
  __device__ void operator+=(const ScaleAndShift& more) {
    scale += more.scale;
    shift += more.shift;
  }
};

/// finish(j, the sums over the rows) for every column j.
template <class Finish>
void sum_scale_and_shift(const Cuda& cuda, const Matrix<float, Cuda>& normalized,
                         const Matrix<float, Cuda>& dy, const Finish& finish) {
  const ConstMatrixView<float, Cuda> x = normalized, above = dy;
  sum_over_rows<ScaleAndShift>(
      cuda, dy.rows, dy.columns,
      [=] __device__(std::int64_t i, std::int64_t j) {
        const auto d = static_cast<double>(above(i, j));
        return ScaleAndShift{d * static_cast<double>(x(i, j)), d};
      },
      finish);
}

/// gradient_ij = update(i, j, gradient_ij); unless `sums` [1, columns] is null, it becomes the
/// sums of the new gradient's columns, as sum_rows (row_sum.hpp) adds them, but without
/// reading it again.
template <class Update>
void update_and_sum(const Cuda& cuda, MatrixView<float, Cuda> gradient, Matrix<float, Cuda>* sums,
                    const Update& update) {
  float* const to = sums == nullptr ? nullptr : sums->data.data();
  sum_over_rows(
      cuda, gradient.rows, gradient.columns,
      [=] __device__(std::int64_t i, std::int64_t j) {
        const float d = gradient(i, j);
        // An update that needs it in a branch only would wait for two loads, one by one.
        load_now();
        return update(i, j, d);
      },
      [=] __device__(std::int64_t j, double sum) {
        if (to != nullptr) to[j] = static_cast<float>(sum);
      },
      [=] __device__(std::int64_t i, std::int64_t j, float term) { gradient(i, j) = term; });
}

}  // namespace espalier
