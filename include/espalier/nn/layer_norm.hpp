// Layer normalisation (Ba, Kiros, Hinton 2016), row by row over the columns: it looks at one vertex
// only, so training and evaluation compute the same. Means are sums in double of eight interleaved
// parts, element j in part j % 8, on the GPU as on the CPU.
//
//     x^ = (z - mean) / sqrt(variance + eps)       y = scale x^ + shift
//     mean and biased variance of the row, eps = 1e-5
//
//     g  = scale dy           dscale = sum over rows of dy x^      dshift = sum over rows of dy
//     dz = (g - mean(g) - x^ mean(g x^)) / sqrt(variance + eps)           means over the row
#pragma once

#include "espalier/base/execution.hpp"
#include "espalier/dense/matrix.hpp"

namespace espalier {

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
