// What a space gives to work that the host does.
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "espalier/base/arrays.hpp"
#include "espalier/base/execution.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/nn/layer.hpp"

namespace espalier {

/// The rows of a matrix in memory of the host: where they lie, or a copy.
inline const float* rows_on_host(const Cpu&, const Matrix<float>& matrix, Buffer<float>&) {
  return matrix.data.data();
}
inline const float* rows_on_host(const Cuda& cuda, const Matrix<float, Cuda>& matrix, Buffer<float>& copy) {
  copy = copy_from(cuda, matrix.data);
  return copy.data();
}

/// Trained tensors in memory of the host, as long as this and they live.
template <class Space>
class TensorsOnHost {
 public:
  TensorsOnHost(const Space& space, std::span<const Parameter<float, Space>> tensors) {
    for (const auto& tensor : tensors)
      views_.emplace_back(tensor.value.rows, tensor.value.columns,
                          rows_on_host(space, tensor.value, copies_.emplace_back()));
  }
  TensorsOnHost(const TensorsOnHost&) = delete;
  TensorsOnHost& operator=(const TensorsOnHost&) = delete;

  std::span<const ConstMatrixView<float>> views() const& { return views_; }
  void views() const&& = delete;

 private:
  std::deque<Buffer<float>> copies_;
  std::vector<ConstMatrixView<float>> views_;
};

/// How many threads of the host work for a space.
inline int host_threads(const Cpu& cpu) {
  return cpu.threads;
}
inline int host_threads(const Cuda&) {
  return 1;
}

}  // namespace espalier
