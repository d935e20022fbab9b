// What layers add to a result of a vertex's own vector; gradients of rows that a draw has chosen.
#pragma once

#include "espalier/base/execution.hpp"
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

}  // namespace espalier
