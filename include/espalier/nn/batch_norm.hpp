// Batch normalisation (Ioffe and Szegedy, ICML 2015), column by column over the rows of a minibatch.
//
//     x^ = (z - mean) / sqrt(variance + eps)       y = scale x^ + shift           eps = 1e-5, biased variance
//
//     dscale = sum dy x^      dshift = sum dy
//     dz = scale / (rows sqrt(variance + eps)) (rows dy - dshift - x^ dscale)
//
// Evaluation uses running statistics instead: their update takes the unbiased variance, as PyTorch does. Sums
// are double.
#pragma once

#include "espalier/base/execution.hpp"
#include "espalier/dense/matrix.hpp"

namespace espalier {

inline constexpr double kNormalizationEpsilon = 1e-5;

/// Z [rows, f] becomes x^; output becomes y [rows, f]; inverse_deviation, mean and unbiased_variance [1, f]
/// of the minibatch.
template <class T>
void batch_norm_forward(const Cpu&, Matrix<T>& z, const Matrix<T>& scale, const Matrix<T>& shift,
                        Matrix<T>& output, Matrix<T>& inverse_deviation, Matrix<T>& mean,
                        Matrix<T>& unbiased_variance);

/// gradient [rows, f] = dy becomes dz; dscale and dshift [1, f] are overwritten.
template <class T>
void batch_norm_backward(const Cpu&, const Matrix<T>& normalized, const Matrix<T>& inverse_deviation,
                         const Matrix<T>& scale, Matrix<T>& gradient, Matrix<T>& dscale, Matrix<T>& dshift);

/// z becomes y by the given statistics: every element by itself.
template <class T>
void batch_norm_evaluate(const Cpu&, const Matrix<T>& mean, const Matrix<T>& variance, const Matrix<T>& scale,
                         const Matrix<T>& shift, Matrix<T>& z);

}  // namespace espalier
