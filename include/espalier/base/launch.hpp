// How a launcher puts a kernel on the compute stream. For .cu files only.
//
// Every launch carries the launcher's name: a range for the profiler, and, with
// ESPALIER_CUDA_SYNC=1, the name that an error is given.
#pragma once

#include <cuda_runtime.h>

#if !defined(__CUDACC__) && !defined(ESPALIER_EMULATION)
#error "cuda.mk took a file with kernels for plain C++: let it include launch.hpp itself"
#endif

#include <algorithm>
#include <array>
#include <tuple>
#include <type_traits>

#include "espalier/base/cuda.hpp"
#include "espalier/base/divisor.hpp"

namespace espalier {

inline constexpr int kWarp = 32;
inline constexpr unsigned kAllLanes = 0xffffffffu;
inline constexpr int kBlockThreads = 256;  ///< of kernels that have no reason for another number
inline constexpr int kBlockWarps = kBlockThreads / kWarp;

/// The number of blocks of `per_block` items for `items`.
inline unsigned blocks_for(std::int64_t items, std::int64_t per_block = kBlockThreads) {
  return static_cast<unsigned>((items + per_block - 1) / per_block);
}

/// The compiler leaves loads that stand before it there, and does not put them off into a branch.
__device__ inline void load_now() {
  asm volatile("" ::: "memory");
}

/// Which warp of the grid this is, of blocks of kBlockThreads in a row.
__device__ inline std::int64_t warp_of_grid() {
  return static_cast<std::int64_t>(blockIdx.x) * kBlockWarps + threadIdx.x / kWarp;
}

/// kernel<<<grid, block>>>(arguments...) on the compute stream; nothing for an empty grid.
template <class... Parameters, class... Arguments>
void launch(const Cuda& cuda, const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block,
            Arguments&&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments),
                "one argument for each parameter of the kernel");
  if (grid.x == 0 || grid.y == 0) return;
  std::tuple<Parameters...> values(std::forward<Arguments>(arguments)...);
  auto pointers = std::apply(
      [](auto&... value) {
        return std::array<void*, sizeof...(value)>{const_cast<void*>(static_cast<const void*>(&value))...};
      },
      values);
  const ProfilerRange range(name);
  check_cuda(static_cast<int>(cudaLaunchKernel(kernel, grid, block, pointers.data(), 0, cuda.stream())), name,
             __FILE__, __LINE__);
  cuda.launched(name);
}

template <class Function>
__global__ void __launch_bounds__(kBlockThreads) for_each_kernel(std::int64_t count, Function function) {
  const auto step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (auto i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
    function(i);
}

/// function(i) for every i < count, each by a thread of its own: `function` is a __device__ lambda
/// or functor, copied to the device.
template <class Function>
void for_each(const Cuda& cuda, const char* name, std::int64_t count, const Function& function) {
  constexpr std::int64_t kMostBlocks = std::int64_t{1} << 20;
  const auto blocks = std::min<std::int64_t>((count + kBlockThreads - 1) / kBlockThreads, kMostBlocks);
  launch(cuda, name, for_each_kernel<Function>, dim3(static_cast<unsigned>(blocks)), dim3(kBlockThreads),
         count, function);
}

/// function(i) for every i < rows, each by a thread of its own, however many elements they have.
template <class Function>
void for_rows(const Cuda& cuda, const char* name, std::int64_t rows, std::int64_t /*elements*/,
              const Function& function) {
  for_each(cuda, name, rows, function);
}

template <class Function>
struct OfElement {
  Divisor by_columns;
  std::int64_t columns;
  Function function;
  __device__ void operator()(std::int64_t at) const {
    const std::int64_t i = by_columns.quotient(at);
    function(i, at - i * columns);
  }
};

/// function(i, j) for every i < rows and j < columns, each by a thread of its own: threads of a
/// warp have neighbouring j.
template <class Function>
void for_each_in_rows(const Cuda& cuda, const char* name, std::int64_t rows, std::int64_t columns,
                      const Function& function) {
  if (columns > 0)
    for_each(cuda, name, rows * columns, OfElement<Function>{Divisor(columns), columns, function});
}

}  // namespace espalier
