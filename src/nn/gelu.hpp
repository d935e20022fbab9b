// GELU (Hendrycks and Gimpel 2016): x Phi(x), Phi the distribution function of the standard normal.
#pragma once

#include <cmath>

#include "espalier/base/execution.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/dense/matrix.hpp"

namespace espalier {

template <class T>
ESPALIER_HD inline T normal_distribution(T x) {
  return static_cast<T>(0.5) * (T{1} + std::erf(x * static_cast<T>(0.70710678118654752440)));
}
template <class T>
ESPALIER_HD inline T normal_density(T x) {
  return static_cast<T>(0.39894228040143267794) * std::exp(static_cast<T>(-0.5) * x * x);
}

/// y = gelu(x), resized.
template <class T>
void gelu(const Cpu&, const Matrix<T>& x, Matrix<T>& y);
template <class T>
void gelu(const Cuda&, const Matrix<T, Cuda>& x, Matrix<T, Cuda>& y);

/// dy becomes dx.
template <class T>
void gelu_backward(const Cpu&, const Matrix<T>& x, Matrix<T>& dy);
template <class T>
void gelu_backward(const Cuda&, const Matrix<T, Cuda>& x, Matrix<T, Cuda>& dy);

}  // namespace espalier
