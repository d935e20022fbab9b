// The gradient of a step: the sum, over the step's minibatches on all ranks, of tensors of equal shapes.
//
// Each minibatch's contribution is scaled beforehand (1 / seeds of the step), so the sum is the exact mean
// over the seeds. `reproducible`: every contribution is rounded to fixed point with one exponent per tensor
// (the largest magnitude of any minibatch, by an all-reduce), and integers are added: the same bits whichever
// ranks computed them. Otherwise floats are added.
#pragma once

#include <cstdint>
#include <vector>

#include "espalier/comm/communicator.hpp"
#include "espalier/dense/matrix.hpp"

namespace espalier {

class GradientReduction {
 public:
  GradientReduction(const Communicator& comm, bool reproducible) : comm_(comm), reproducible_(reproducible) {}

  /// Adds one minibatch's tensors, each multiplied by `scale`.
  void add(const std::vector<const Matrix<float>*>& tensors, float scale = 1.0f);

  /// Collective; ranks without a minibatch pass through it too. The sums of all contributions since the last
  /// call go to `sums`, whose shapes say what is expected. `contributions`: minibatches of the step over all
  /// ranks.
  void finish(std::int64_t contributions, const std::vector<Matrix<float>*>& sums);

 private:
  void finish_exact(std::int64_t contributions, const std::vector<Matrix<float>*>& sums);
  void finish_float(const std::vector<Matrix<float>*>& sums);

  const Communicator& comm_;
  bool reproducible_;
  std::vector<Buffer<float>> kept_;  ///< flat tensors: one per minibatch (reproducible) or one running sum
  std::size_t contributions_ = 0;    ///< how many of them this step has filled
  Buffer<std::int64_t> fixed_;       ///< their sum in fixed point
};

/// The same on GPUs: train/device_gradient_reduction.hpp.
class DeviceGradientReduction;

template <class Space>
using GradientReductionOn = ForSpace<Space, GradientReduction, DeviceGradientReduction>;

/// Collective. The sum of all ranks' numbers, exact in fixed point: independent of which rank holds which.
/// NaN when any is not finite.
double reproducible_sum(const Communicator& comm, const std::vector<double>& mine);

}  // namespace espalier
