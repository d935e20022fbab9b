// Execution spaces: the first argument of every kernel says where it runs.
// `op(const Cpu&, ...)` and `op(const Cuda&, ...)` are declared side by side in one header. Data
// structures are templates over the space that their memory belongs to, Cpu where nothing is said;
// callers of kernels are templates over it too. And the loops over elements and rows that a body
// for both spaces (NAME.both.cu) is written with, as the CPU runs them.
#pragma once

#include <cstdint>
#include <type_traits>

#include "espalier/base/buffer.hpp"

/// Stands before the parameters of a lambda that the space runs.
#if defined(__CUDACC__)
#define ESPALIER_DEVICE __device__
#else
#define ESPALIER_DEVICE
#endif

namespace espalier {

/// How dense products are computed: products of float32 numbers in float32; with the factors
/// rounded to TF32 (10 bits of mantissa), by GPUs; or to bfloat16 (7 bits). Sums are float32 in
/// each. Storage is float32 in each.
enum class Precision { kFp32, kTf32, kBf16 };

/// Runs on this process's cores. `threads` is the number of OpenMP threads a kernel may use.
struct Cpu {
  int threads = 1;
  Precision precision = Precision::kFp32;  ///< of products of float32 matrices; or kBf16
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

// Work on elements that every space does alike, so that its body is written once, in a
// NAME.both.cu (base/kernels.hpp): the CPU implementations of for_each, for_rows and
// for_each_in_rows (base/launch.hpp).

inline constexpr std::int64_t kElementsOfAThread = 16384;  ///< fewer are done by one thread

/// function(i) for every i < count; `name`: as a GPU calls it.
template <class Function>
void for_each(const Cpu& cpu, const char* /*name*/, std::int64_t count, Function function) {
#pragma omp parallel for num_threads(cpu.threads) schedule(static) \
    firstprivate(function) if (count > kElementsOfAThread)
  for (std::int64_t i = 0; i < count; ++i) function(i);
}

/// function(i) for every i < rows, which have `elements` among them to work on.
template <class Function>
void for_rows(const Cpu& cpu, const char* /*name*/, std::int64_t rows, std::int64_t elements,
              Function function) {
#pragma omp parallel for num_threads(cpu.threads) schedule(static) \
    firstprivate(function) if (elements > kElementsOfAThread)
  for (std::int64_t i = 0; i < rows; ++i) function(i);
}

/// function(i, j) for every i < rows and j < columns.
template <class Function>
void for_each_in_rows(const Cpu& cpu, const char* /*name*/, std::int64_t rows, std::int64_t columns,
                      Function function) {
#pragma omp parallel for num_threads(cpu.threads) schedule(static) \
    firstprivate(function) if (rows * columns > kElementsOfAThread)
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) function(i, j);
}

}  // namespace espalier
