// What tests that run on every space share: arrays of the host as arrays of the space, and back.
#pragma once

#include "espalier/base/device_array.hpp"

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

}  // namespace espalier
