// Batch and layer normalisation.
//
// Of a batch (Ioffe and Szegedy, ICML 2015), column by column over the rows of a minibatch:
//
//     x^ = (z - mean) / sqrt(variance + eps)    y = scale x^ + shift    eps = 1e-5, biased variance
//
//     dscale = sum dy x^      dshift = sum dy
//     dz = scale / (rows sqrt(variance + eps)) (rows dy - dshift - x^ dscale)
//
// Evaluation uses running statistics instead: their update takes the unbiased variance, as PyTorch
// does. Of one row x^ is 0, so y = shift and dz = 0, and it has no unbiased variance: 0 stands for
// it, with divisor 0 (Network::weigh_statistics). Sums are double, in an order that neither threads
// nor devices change: the GPU's bits are the CPU's.
#pragma once

#include <cmath>

#include "espalier/base/execution.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/dense/matrix.hpp"

namespace espalier {

inline constexpr double kNormalizationEpsilon = 1e-5;

/// 1 / sqrt(variance + eps).
template <class T>
ESPALIER_HD inline T inverse_deviation_of(double variance) {
  return static_cast<T>(1.0 / std::sqrt(variance + kNormalizationEpsilon));
}

/// Z [rows, f] becomes x^; output becomes y [rows, f]; inverse_deviation, mean and
/// unbiased_variance [1, f] of the minibatch.
template <class T>
void batch_norm_forward(const Cpu&, Matrix<T>& z, const Matrix<T>& scale, const Matrix<T>& shift,
                        Matrix<T>& output, Matrix<T>& inverse_deviation, Matrix<T>& mean,
                        Matrix<T>& unbiased_variance);
template <class T>
void batch_norm_forward(const Cuda&, Matrix<T, Cuda>& z, const Matrix<T, Cuda>& scale,
                        const Matrix<T, Cuda>& shift, Matrix<T, Cuda>& output,
                        Matrix<T, Cuda>& inverse_deviation, Matrix<T, Cuda>& mean,
                        Matrix<T, Cuda>& unbiased_variance);

/// gradient [rows, f] = dy becomes dz; dscale and dshift [1, f] are overwritten.
template <class T>
void batch_norm_backward(const Cpu&, const Matrix<T>& normalized, const Matrix<T>& inverse_deviation,
                         const Matrix<T>& scale, Matrix<T>& gradient, Matrix<T>& dscale, Matrix<T>& dshift);
template <class T>
void batch_norm_backward(const Cuda&, const Matrix<T, Cuda>& normalized,
                         const Matrix<T, Cuda>& inverse_deviation, const Matrix<T, Cuda>& scale,
                         Matrix<T, Cuda>& gradient, Matrix<T, Cuda>& dscale, Matrix<T, Cuda>& dshift);

/// z becomes y by the given statistics: every element by itself.
template <class T>
void batch_norm_evaluate(const Cpu&, const Matrix<T>& mean, const Matrix<T>& variance, const Matrix<T>& scale,
                         const Matrix<T>& shift, Matrix<T>& z);
template <class T>
void batch_norm_evaluate(const Cuda&, const Matrix<T, Cuda>& mean, const Matrix<T, Cuda>& variance,
                         const Matrix<T, Cuda>& scale, const Matrix<T, Cuda>& shift, Matrix<T, Cuda>& z);

// Layer normalisation (Ba, Kiros, Hinton 2016), row by row over the columns: it looks at one vertex
// only, so training and evaluation compute the same. Means are sums in double of eight interleaved
// parts, element j in part j % 8, on the GPU as on the CPU.
//
//     x^ = (z - mean) / sqrt(variance + eps)       y = scale x^ + shift
//     mean and biased variance of the row, eps = 1e-5
//
//     g  = scale dy           dscale = sum over rows of dy x^      dshift = sum over rows of dy
//     dz = (g - mean(g) - x^ mean(g x^)) / sqrt(variance + eps)           means over the row

/// Z [rows, f] becomes x^; output becomes y [rows, f]; inverse_deviation [rows, 1].
template <class T>
void layer_norm_forward(const Cpu&, Matrix<T>& z, const Matrix<T>& scale, const Matrix<T>& shift,
                        Matrix<T>& output, Matrix<T>& inverse_deviation);
template <class T>
void layer_norm_forward(const Cuda&, Matrix<T, Cuda>& z, const Matrix<T, Cuda>& scale,
                        const Matrix<T, Cuda>& shift, Matrix<T, Cuda>& output,
                        Matrix<T, Cuda>& inverse_deviation);

/// gradient [rows, f] = dy becomes dz; dscale and dshift [1, f] are overwritten.
template <class T>
void layer_norm_backward(const Cpu&, const Matrix<T>& normalized, const Matrix<T>& inverse_deviation,
                         const Matrix<T>& scale, Matrix<T>& gradient, Matrix<T>& dscale, Matrix<T>& dshift);
template <class T>
void layer_norm_backward(const Cuda&, const Matrix<T, Cuda>& normalized,
                         const Matrix<T, Cuda>& inverse_deviation, const Matrix<T, Cuda>& scale,
                         Matrix<T, Cuda>& gradient, Matrix<T, Cuda>& dscale, Matrix<T, Cuda>& dshift);

/// z becomes y: bit for bit what forward gives.
template <class T>
void layer_norm_evaluate(const Cpu&, const Matrix<T>& scale, const Matrix<T>& shift, Matrix<T>& z);
template <class T>
void layer_norm_evaluate(const Cuda&, const Matrix<T, Cuda>& scale, const Matrix<T, Cuda>& shift,
                         Matrix<T, Cuda>& z);

}  // namespace espalier
