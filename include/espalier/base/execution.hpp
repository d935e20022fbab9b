// Execution spaces: the first argument of every kernel says where it runs.
// `op(const Cpu&, ...)` and `op(const Cuda&, ...)` are declared side by side in one header. Data
// structures are templates over the space that their memory belongs to, Cpu where nothing is said;
// callers of kernels are templates over it too.
#pragma once

#include <type_traits>

#include "espalier/base/buffer.hpp"

namespace espalier {

/// Runs on this process's cores. `threads` is the number of OpenMP threads a kernel may use.
struct Cpu {
  int threads = 1;
};

/// Runs on this process's GPU, on its stream: a kernel returns before its work is done
/// (base/cuda.hpp).
class Cuda;

template <class T>
class DeviceArray;

/// Of two types the one that belongs to a space.
template <class Space, class OnCpu, class OnGpu>
using ForSpace = std::conditional_t<std::is_same_v<Space, Cuda>, OnGpu, OnCpu>;

/// Memory of a space that grows: data(), size(), capacity(), resize(), reserve(), clear(). Elements
/// are not filled. A DeviceArray is for memory that kernels read, and does not keep what it held
/// when it grows.
template <class Space, class T>
using Array = ForSpace<Space, Buffer<T>, DeviceArray<T>>;

}  // namespace espalier
