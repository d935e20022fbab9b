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

/// What was made on the host, where the space has its memory.
template <class T, class Space>
Matrix<T, Space> placed(const Space& space, Matrix<T> values) {
  if constexpr (std::is_same_v<Space, Cpu>) {
    return values;
  } else {
    Matrix<T, Space> there;
    upload(space, values, there);
    return there;
  }
}

}  // namespace espalier
