// A matrix on its way to another: exponential averages.
#pragma once

#include "espalier/base/execution.hpp"
#include "espalier/dense/matrix.hpp"

namespace espalier {

/// to = (1 - share) to + share from, in double, rounded once: the same bits in each space. Both
/// have one shape.
template <class T>
void blend(const Cpu&, double share, const Matrix<T>& from, Matrix<T>& to);
template <class T>
void blend(const Cuda&, double share, const Matrix<T, Cuda>& from, Matrix<T, Cuda>& to);

template <class T>
ESPALIER_HD inline T blended(double share, T from, T to) {
  return static_cast<T>((1 - share) * static_cast<double>(to) + share * static_cast<double>(from));
}

}  // namespace espalier
