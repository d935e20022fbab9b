// Square matrices of relations and heads, one under the other, each times a learned number and a
// factor that all share: ~W_p = factor mu_p W_p.
#pragma once

#include "espalier/base/execution.hpp"
#include "espalier/dense/matrix.hpp"

namespace espalier {

/// scaled [P * width, width], resized, of w of that shape and P numbers mu.
template <class T>
void scale_matrices(const Cpu&, const Matrix<T>& w, const Matrix<T>& mu, T factor, Matrix<T>& scaled);
template <class T>
void scale_matrices(const Cuda&, const Matrix<T, Cuda>& w, const Matrix<T, Cuda>& mu, T factor,
                    Matrix<T, Cuda>& scaled);

/// dscaled becomes dW; dmu_p = factor times the sum of W_p's elements times those of dscaled_p.
template <class T>
void scale_matrices_backward(const Cpu&, const Matrix<T>& w, const Matrix<T>& mu, T factor,
                             Matrix<T>& dscaled, Matrix<T>& dmu);
template <class T>
void scale_matrices_backward(const Cuda&, const Matrix<T, Cuda>& w, const Matrix<T, Cuda>& mu, T factor,
                             Matrix<T, Cuda>& dscaled, Matrix<T, Cuda>& dmu);

}  // namespace espalier
