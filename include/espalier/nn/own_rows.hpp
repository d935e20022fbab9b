// What layers add to a result of a vertex's own vector, by a factor (GIN) or by a gate (HGT);
// gradients of rows that a draw has chosen.
#pragma once

#include "espalier/base/elementary.hpp"
#include "espalier/base/execution.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/nn/convolution.hpp"

namespace espalier {

/// y += x, both [rows, f].
template <class T, class Space>
void add_rows(const Space&, ConstViewOn<Space, T> x, ViewOn<Space, T> y);

/// y += (1 + eps) x, eps [1, 1] in memory of the space.
template <class T>
void add_own_rows(const Cpu&, const Matrix<T>& eps, ConstMatrixView<T> x, MatrixView<T> y);
template <class T>
void add_own_rows(const Cuda&, const Matrix<T, Cuda>& eps, ConstMatrixView<T, Cuda> x, MatrixView<T, Cuda> y);

/// sum [1, 1] = the sum of x_ij y_ij, in double, in one order: the gradient of eps.
template <class T>
void product_of_own_rows(const Cpu&, ConstMatrixView<T> x, ConstMatrixView<T> y, Matrix<T>& sum);
template <class T>
void product_of_own_rows(const Cuda&, ConstMatrixView<T, Cuda> x, ConstMatrixView<T, Cuda> y,
                         Matrix<T, Cuda>& sum);

/// rows(k, :) *= weight where drawn[positions[k]] is not 0; positions [rows.rows]; memory of the
/// space. The host does not wait.
template <class T>
void scale_drawn_rows(const Cpu&, const std::uint8_t* drawn, const std::int64_t* positions, double weight,
                      MatrixView<T> rows);
template <class T>
void scale_drawn_rows(const Cuda&, const std::uint8_t* drawn, const std::int64_t* positions, double weight,
                      MatrixView<T, Cuda> rows);

// A mean of two rows, weighed by a gate that is learned: z_i = g y_i + (1 - g) x_i, g = sigmoid(s).

template <class T>
ESPALIER_HD inline T gate_of(T s) {
  const T e = exp_of_nonpositive(s < T{0} ? s : -s);
  return (s < T{0} ? e : T{1}) / (T{1} + e);
}

/// z += g y + (1 - g) x, all of one shape; the gate's s is row `gate` of skip [gates, 1].
template <class T>
void add_mixed_rows(const Cpu&, const Matrix<T>& skip, std::int64_t gate, ConstMatrixView<T> x,
                    ConstMatrixView<T> y, MatrixView<T> z);
template <class T>
void add_mixed_rows(const Cuda&, const Matrix<T, Cuda>& skip, std::int64_t gate, ConstMatrixView<T, Cuda> x,
                    ConstMatrixView<T, Cuda> y, MatrixView<T, Cuda> z);

/// dy = g dz, and row `gate` of dskip += the sum of g (1 - g) (y - x) . dz, added in double.
template <class T>
void mixed_rows_backward(const Cpu&, const Matrix<T>& skip, std::int64_t gate, ConstMatrixView<T> x,
                         ConstMatrixView<T> y, ConstMatrixView<T> dz, MatrixView<T> dy, Matrix<T>& dskip);
template <class T>
void mixed_rows_backward(const Cuda&, const Matrix<T, Cuda>& skip, std::int64_t gate,
                         ConstMatrixView<T, Cuda> x, ConstMatrixView<T, Cuda> y, ConstMatrixView<T, Cuda> dz,
                         MatrixView<T, Cuda> dy, Matrix<T, Cuda>& dskip);

/// dx += (1 - g) dz.
template <class T>
void add_past_gate(const Cpu&, const Matrix<T>& skip, std::int64_t gate, ConstMatrixView<T> dz,
                   MatrixView<T> dx);
template <class T>
void add_past_gate(const Cuda&, const Matrix<T, Cuda>& skip, std::int64_t gate, ConstMatrixView<T, Cuda> dz,
                   MatrixView<T, Cuda> dx);

#define ESPALIER_INSTANTIATE_GATED_SKIP(T, Space)                                                           \
  template void add_mixed_rows<T>(const Space&, const Matrix<T, Space>&, std::int64_t,                      \
                                  ConstMatrixView<T, Space>, ConstMatrixView<T, Space>,                     \
                                  MatrixView<T, Space>);                                                    \
  template void mixed_rows_backward<T>(const Space&, const Matrix<T, Space>&, std::int64_t,                 \
                                       ConstMatrixView<T, Space>, ConstMatrixView<T, Space>,                \
                                       ConstMatrixView<T, Space>, MatrixView<T, Space>, Matrix<T, Space>&); \
  template void add_past_gate<T>(const Space&, const Matrix<T, Space>&, std::int64_t,                       \
                                 ConstMatrixView<T, Space>, MatrixView<T, Space>);

}  // namespace espalier
