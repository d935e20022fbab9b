// What a space gives to work that the host does.
#pragma once

#include "espalier/base/arrays.hpp"
#include "espalier/base/execution.hpp"
#include "espalier/dense/matrix.hpp"

namespace espalier {

/// The rows of a matrix in memory of the host: where they lie, or a copy.
inline const float* rows_on_host(const Cpu&, const Matrix<float>& matrix, Buffer<float>&) {
  return matrix.data.data();
}
inline const float* rows_on_host(const Cuda& cuda, const Matrix<float, Cuda>& matrix, Buffer<float>& copy) {
  copy = copy_from(cuda, matrix.data);
  return copy.data();
}

/// How many threads of the host work for a space.
inline int host_threads(const Cpu& cpu) {
  return cpu.threads;
}
inline int host_threads(const Cuda&) {
  return 1;
}

}  // namespace espalier
