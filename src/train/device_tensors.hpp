// One kernel for a list of tensors: blocks of row y of the grid visit tensor y. For .cu files only.
#pragma once

#include <algorithm>
#include <vector>

#include "espalier/base/launch.hpp"
#include "tensor_list.hpp"

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

/// The twin of tensor_list.hpp's.
template <class T, class Function>
void for_each_element(const Cuda& cuda, const char* name, const std::vector<Tensor<T>>& tensors,
                      const Function& function) {
  launch_for(cuda, name, tensors, visit<T, Function>, function);
}

}  // namespace espalier::tensor_list
