// Matrices on their way to the GPU and back.
#pragma once

#include "espalier/base/device_array.hpp"
#include "espalier/dense/matrix.hpp"

namespace espalier {

/// to = from, resized; runs in the order of the stream, and `from` may be changed when it returns.
template <class T>
void upload(const Cuda& cuda, const Matrix<T>& from, Matrix<T, Cuda>& to) {
  to.resize(from.rows, from.columns);
  copy_bytes_to_device(cuda, from.data.data(), to.data.data(), from.data.size() * sizeof(T));
}

/// Waits for the stream.
template <class T>
Matrix<T> download(const Cuda& cuda, const Matrix<T, Cuda>& from) {
  Matrix<T> to(from.rows, from.columns);
  copy_bytes_to_host(cuda, from.data.data(), to.data.data(), from.data.size() * sizeof(T));
  return to;
}

}  // namespace espalier
