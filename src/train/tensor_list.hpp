// A list of tensors whose elements are visited one by one, by every space.
#pragma once

#include <cstdint>
#include <vector>

#include "espalier/dense/matrix.hpp"

namespace espalier::tensor_list {

template <class T>
struct Tensor {
  T* data;
  std::int64_t size;
  std::int64_t at;  ///< its place in an array of all tensors one after another
  int number;       ///< its place in the list
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

/// function(tensor, place, element) for every element: the number of its tensor, its place in an
/// array of all tensors one after another, and itself. `name`: of the kernel on a GPU.
template <class T, class Function>
void for_each_element(const Cpu&, const char*, const std::vector<Tensor<T>>& tensors,
                      const Function& function) {
  for (const Tensor<T> tensor : tensors)
    for (std::int64_t k = 0; k < tensor.size; ++k) function(tensor.number, tensor.at + k, tensor.data[k]);
}

}  // namespace espalier::tensor_list
