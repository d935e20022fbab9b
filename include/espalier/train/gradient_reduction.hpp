// The gradient of a step: the sum, over the step's minibatches on all ranks, of tensors of
// equal shapes.
//
// Each minibatch's contribution is scaled beforehand (1 / seeds of the step), so the sum is the
// exact mean over the seeds. `reproducible`: every contribution is rounded to fixed point with one
// exponent per tensor (the largest magnitude of any minibatch, by an all-reduce), and integers are
// added: the same bits whichever ranks computed them, in any space. Otherwise floats are added.
#pragma once

#include <cstdint>
#include <vector>

#include "espalier/comm/device_communicator.hpp"
#include "espalier/dense/matrix.hpp"

namespace espalier {

template <class Space>
class GradientReductionOn {
 public:
  /// `comm` must outlive it.
  GradientReductionOn(const Space& space, const CommunicatorOn<Space>& comm, bool reproducible)
      : space_(space), comm_(comm), reproducible_(reproducible) {}

  /// Adds one minibatch's tensors, each multiplied by `scale`. On a GPU they may change when what
  /// was launched so far is done.
  void add(const std::vector<const Matrix<float, Space>*>& tensors, float scale = 1.0f);

  /// Collective; ranks without a minibatch pass through it too. The sums of all contributions since
  /// the last call go to `sums`, whose shapes say what is expected. `contributions`: minibatches of
  /// the step over all ranks. On a GPU the host does not wait.
  void finish(std::int64_t contributions, const std::vector<Matrix<float, Space>*>& sums);

 private:
  void finish_exact(std::int64_t contributions, const std::vector<Matrix<float, Space>*>& sums);
  void finish_float(const std::vector<Matrix<float, Space>*>& sums);

  Space space_;
  const CommunicatorOn<Space>& comm_;
  bool reproducible_;
  std::vector<Array<Space, float>> kept_;  ///< flat tensors: one per minibatch (reproducible) or
                                           ///< one running sum
  std::size_t contributions_ = 0;          ///< how many of them this step has filled
  Array<Space, std::uint64_t> bounds_;     ///< [tensors] bits of the largest magnitude, a
                                           ///< float32 number
  Array<Space, double> units_;             ///< [tensors] what an integer counts: a power of
                                           ///< two; or NaN
  Array<Space, std::int64_t> fixed_;       ///< the contributions' sum in fixed point
};

using GradientReduction = GradientReductionOn<Cpu>;

/// *flag becomes 1 when any number of the tensors is not finite, and otherwise stays. `flag`:
/// device memory.
void note_not_finite(const Cuda&, const std::vector<const Matrix<float, Cuda>*>& tensors, int* flag);

/// Collective. The sum of all ranks' numbers, exact in fixed point: independent of which rank holds
/// which. NaN when any is not finite.
double reproducible_sum(const Communicator& comm, const std::vector<double>& mine);

}  // namespace espalier
