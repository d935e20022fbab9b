#include <algorithm>

#include "espalier/base/device_array.hpp"
#include "espalier/base/launch.hpp"
#include "espalier/base/write_alike.hpp"
#include "gradient_reduction.inl.hpp"

// One kernel for a list of tensors: blocks of row y of the grid visit tensor y.
namespace espalier::tensor_list {

inline constexpr std::size_t kTensorsOfLaunch = 32;
inline constexpr std::int64_t kMostBlocks = 1024;  ///< of a tensor

/// What a kernel is given.
template <class T>
struct Tensors {
  Tensor<T> tensor[kTensorsOfLaunch];
};

/// Launches `kernel`(tensors, arguments...) for all of them.
template <class T, class... Parameters, class... Arguments>
void launch_for(const Cuda& cuda, const char* name, const std::vector<Tensor<T>>& tensors,
                void (*kernel)(Tensors<T>, Parameters...), const Arguments&... arguments) {
  for (std::size_t begin = 0; begin < tensors.size(); begin += kTensorsOfLaunch) {
    const std::size_t count = std::min(kTensorsOfLaunch, tensors.size() - begin);
    Tensors<T> list;
    std::int64_t largest = 0;
    for (std::size_t k = 0; k < count; ++k) {
      list.tensor[k] = tensors[begin + k];
      largest = std::max(largest, list.tensor[k].size);
    }
    const auto blocks = std::min<std::int64_t>(blocks_for(largest), kMostBlocks);
    launch(cuda, name, kernel, dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(count)),
           dim3(kBlockThreads), list, arguments...);
  }
}

template <class T, class Function>
__global__ void __launch_bounds__(kBlockThreads) visit(Tensors<T> tensors, Function function) {
  const Tensor<T>& tensor = tensors.tensor[blockIdx.y];
  const auto step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (auto k = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; k < tensor.size; k += step)
    function(tensor.number, tensor.at + k, tensor.data[k]);
}

/// As on the CPU.
template <class T, class Function>
void for_each_element(const Cuda& cuda, const char* name, const std::vector<Tensor<T>>& tensors,
                      const Function& function) {
  launch_for(cuda, name, tensors, visit<T, Function>, function);
}

}  // namespace espalier::tensor_list

namespace espalier {
namespace {

using tensor_list::Tensors;

__device__ std::uint32_t magnitude_bits(float x) {
  return __float_as_uint(x) & 0x7fffffffu;
}

/// The largest of the numbers that the lanes of a warp have.
__device__ std::uint32_t largest_of_warp(std::uint32_t mine) {
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) {
    const std::uint32_t other = __shfl_xor_sync(kAllLanes, mine, lanes);
    mine = other > mine ? other : mine;
  }
  return mine;
}

/// bounds[t] = the bits of the largest magnitude of tensor t, unless they are larger already.
__global__ void __launch_bounds__(kBlockThreads)
    find_bounds_kernel(Tensors<const float> tensors, unsigned long long* bounds) {
  const auto& tensor = tensors.tensor[blockIdx.y];
  if (static_cast<std::int64_t>(blockIdx.x) * blockDim.x >= tensor.size) return;  // the whole block
  const auto step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  std::uint32_t largest = 0;
  for (auto k = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; k < tensor.size;
       k += step) {
    const std::uint32_t bits = magnitude_bits(tensor.data[k]);
    largest = bits > largest ? bits : largest;
  }
  largest = largest_of_warp(largest);
  if (threadIdx.x % kWarp == 0 && largest > 0)
    atomicMax(bounds + tensor.number, static_cast<unsigned long long>(largest));
}

}  // namespace

void note_not_finite(const Cuda& cuda, const std::vector<const Matrix<float, Cuda>*>& tensors, int* flag) {
  for_each_element(cuda, "note_not_finite", list_of<const float>(tensors),
                   [=] __device__(int, std::int64_t, const float& x) {
                     if (magnitude_bits(x) >= kInfinityBits) write_alike(flag, 1);
                   });
}

template <>
void raise_bounds<Cuda>(const Cuda& cuda, const std::vector<Tensor<const float>>& tensors,
                        DeviceArray<std::uint64_t>& bounds) {
  tensor_list::launch_for(cuda, "gradient bounds", tensors, find_bounds_kernel,
                          reinterpret_cast<unsigned long long*>(bounds.data()));
}

template <>
void find_units<Cuda>(const Cuda& cuda, const DeviceArray<std::uint64_t>& bounds, std::int64_t contributions,
                      DeviceArray<double>& units) {
  const auto* const from = bounds.data();
  auto* const to = units.data();
  for_each(cuda, "gradient units", static_cast<std::int64_t>(bounds.size()), [=] __device__(std::int64_t t) {
    to[t] = unit_of(from[t], __uint_as_float(static_cast<unsigned>(from[t])), contributions);
  });
}

template class GradientReductionOn<Cuda>;
template class NetworkReductionOn<Cuda>;

}  // namespace espalier
