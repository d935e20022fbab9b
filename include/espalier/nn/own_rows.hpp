// What layers add to a result of a vertex's own vector.
#pragma once

#include "espalier/base/execution.hpp"
#include "espalier/dense/matrix.hpp"

namespace espalier {

/// y += x, both [rows, f].
template <class T>
void add_rows(const Cpu&, ConstMatrixView<T> x, MatrixView<T> y);
template <class T>
void add_rows(const Cuda&, ConstMatrixView<T, Cuda> x, MatrixView<T, Cuda> y);

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

}  // namespace espalier
