// The gradient of a step on GPUs: the twin of GradientReduction. The reproducible sums have the CPU's bits; nothing
// waits for the GPU.
#pragma once

#include <cstdint>
#include <vector>

#include "espalier/base/device_array.hpp"
#include "espalier/comm/device_communicator.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/train/gradient_reduction.hpp"

namespace espalier {

class DeviceGradientReduction {
 public:
  /// `comm` must outlive it.
  DeviceGradientReduction(const Cuda& cuda, const DeviceCommunicator& comm, bool reproducible)
      : cuda_(cuda), comm_(comm), reproducible_(reproducible) {}

  /// Adds one minibatch's tensors, each multiplied by `scale`. They may change when what was launched so far is done.
  void add(const std::vector<const Matrix<float, Cuda>*>& tensors, float scale = 1.0f);

  /// Collective, as GradientReduction::finish.
  void finish(std::int64_t contributions, const std::vector<Matrix<float, Cuda>*>& sums);

 private:
  void finish_exact(std::int64_t contributions, const std::vector<Matrix<float, Cuda>*>& sums);
  void finish_float(const std::vector<Matrix<float, Cuda>*>& sums);

  Cuda cuda_;
  const DeviceCommunicator& comm_;
  bool reproducible_;
  std::vector<DeviceArray<float>>
      kept_;                           ///< flat tensors: one per minibatch (reproducible) or one running sum
  std::size_t contributions_ = 0;      ///< how many of them this step has filled
  DeviceArray<std::uint64_t> bounds_;  ///< [tensors] bits of the largest magnitude, a float32 number
  DeviceArray<double> units_;          ///< [tensors] what an integer counts: a power of two; or NaN
  DeviceArray<std::int64_t> fixed_;    ///< the contributions' sum in fixed point
};

/// *flag becomes 1 when any number of the tensors is not finite, and otherwise stays. `flag`: device memory.
void note_not_finite(const Cuda&, const std::vector<const Matrix<float, Cuda>*>& tensors, int* flag);

}  // namespace espalier
