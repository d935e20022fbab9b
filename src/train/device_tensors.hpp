// One kernel for a list of tensors: blocks of row y of the grid visit tensor y. For .cu files only.
#pragma once

#include <algorithm>
#include <vector>

#include "espalier/base/launch.hpp"
#include "espalier/dense/matrix.hpp"

namespace espalier::device_tensors {

inline constexpr std::size_t kTensorsOfLaunch = 32;
inline constexpr std::int64_t kMostBlocks = 1024;  ///< of a tensor

template <class T>
struct Tensor {
  T* data;
  std::int64_t size;
  std::int64_t at;  ///< its place in an array of all tensors one after another
  int number;       ///< its place in the list
};

/// What a kernel is given.
template <class T>
struct Tensors {
  Tensor<T> tensor[kTensorsOfLaunch];
};

template <class T>
std::int64_t total_size(const std::vector<Tensor<T>>& tensors) {
  return tensors.empty() ? 0 : tensors.back().at + tensors.back().size;
}

/// Matrices or constant matrices by pointers.
template <class T, class MatrixPointer>
std::vector<Tensor<T>> list_of(const std::vector<MatrixPointer>& matrices) {
  std::vector<Tensor<T>> list;
  for (const auto* matrix : matrices)
    list.push_back({const_cast<T*>(matrix->data.data()), static_cast<std::int64_t>(matrix->data.size()),
                    total_size(list), static_cast<int>(list.size())});
  return list;
}

/// Tensors of the same sizes that lie one after another from `flat` on.
template <class T, class U>
std::vector<Tensor<T>> list_like(const std::vector<Tensor<U>>& tensors, T* flat) {
  std::vector<Tensor<T>> list;
  for (const auto& t : tensors) list.push_back({flat + t.at, t.size, t.at, t.number});
  return list;
}

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

/// function(tensor, place, element) for every element: the number of its tensor, its place in an array of all tensors
/// one after another, and itself.
template <class T, class Function>
void for_each_element(const Cuda& cuda, const char* name, const std::vector<Tensor<T>>& tensors,
                      const Function& function) {
  launch_for(cuda, name, tensors, visit<T, Function>, function);
}

}  // namespace espalier::device_tensors
