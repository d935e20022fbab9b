// What tests that run on every space share: arrays and matrices of the host as those of the space,
// and back.
#pragma once

#include "espalier/base/device_array.hpp"
#include "espalier/dense/matrix.hpp"

namespace espalier {

/// A copy in memory of the space; on the CPU `placement` says nothing.
template <class T>
Buffer<T> array_on(const Cpu&, const Buffer<T>& values, Placement = Placement::kDevice) {
  return values;
}
template <class T>
DeviceArray<T> array_on(const Cuda& gpu, const Buffer<T>& values, Placement placement = Placement::kDevice) {
  return upload(gpu, values, placement);
}

template <class T>
const Buffer<T>& array_from(const Cpu&, const Buffer<T>& array) {
  return array;
}
template <class T>
Buffer<T> array_from(const Cuda& gpu, const DeviceArray<T>& array) {
  return download(gpu, array);
}

template <class T, class Space>
Matrix<T, Space> matrix_on(const Space& space, const Matrix<T>& matrix) {
  Matrix<T, Space> there;
  there.rows = matrix.rows;
  there.columns = matrix.columns;
  there.data = array_on(space, matrix.data);
  return there;
}
template <class T, class Space>
Matrix<T> matrix_from(const Space& space, const Matrix<T, Space>& matrix) {
  Matrix<T> on_host(matrix.rows, matrix.columns);
  on_host.data = array_from(space, matrix.data);
  return on_host;
}

}  // namespace espalier
