// The gradient of a step: the sum, over the step's minibatches on all ranks, of tensors of
// equal shapes.
//
// Each minibatch's contribution is scaled beforehand (1 / seeds of the step), so the sum is the
// exact mean over the seeds. `reproducible`: every contribution is rounded to fixed point with one
// exponent per tensor (the largest magnitude of any minibatch, by an all-reduce), and integers are
// added: the same bits whichever ranks computed them, in any space. Otherwise floats are added.
//
// A network's gradient is reduced in pieces, a backward pass behind: those of its last layers
// travel while the first ones are computed. Reproducible bits do not depend on where it is cut. On
// a GPU it is one piece: NCCL's sum is on the stream behind all that makes it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "espalier/comm/device_communicator.hpp"
#include "espalier/comm/pending_all_reduce.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/nn/network_shape.hpp"

namespace espalier {

template <class Space>
class GradientReductionOn {
 public:
  using Sums = std::vector<Matrix<float, Space>*>;

  /// `comm` must outlive it.
  GradientReductionOn(const Space& space, const CommunicatorOn<Space>& comm, bool reproducible)
      : space_(space), comm_(comm), reproducible_(reproducible) {}

  /// Adds one minibatch's tensors, each multiplied by `scale`. On a GPU they may change when what
  /// was launched so far is done.
  void add(const std::vector<const Matrix<float, Space>*>& tensors, float scale = 1.0f);
  /// The last contribution of this rank to a step is what finish() will find in `sums`: it is not
  /// copied. Of tensors that lie in one array and are not reproducible.
  void leave_last() requires std::is_same_v<Space, Cuda>;

  /// Collective; ranks without a minibatch pass through it too. The sums of all contributions since
  /// the last call go to `sums`, whose shapes say what is expected. `contributions`: minibatches of
  /// the step over all ranks. On a GPU the host does not wait.
  void finish(std::int64_t contributions, const Sums& sums);

  /// Collective. Begins what finish() of the same `sums` then ends: their shapes are read, and
  /// nothing may be added between. Reductions under way at once on one communicator have different
  /// numbers, from 0 to below 2048, and ranks may begin them in any order.
  void begin(std::int64_t contributions, const Sums& sums, int number) requires std::is_same_v<Space, Cpu>;
  /// Local. Looks whether messages under way have arrived, or `waits` for them, and goes on with
  /// what follows. Has all arrived? Whoever waits asks until it has.
  bool advance(bool waits = false) requires std::is_same_v<Space, Cpu>;

 private:
  enum class Stage { kNotBegun, kBounds, kSums, kArrived };

  void find_bounds(const Sums& sums);
  void add_up_fixed(std::int64_t contributions, const Sums& sums);
  void have_floats(std::int64_t numbers);
  void put_sums(const Sums& sums);
  void add_up_in_place(const Sums& sums, DeviceArray<float>& whole) requires std::is_same_v<Space, Cuda>;

  Space space_;
  const CommunicatorOn<Space>& comm_;
  bool reproducible_;
  std::vector<Array<Space, float>> kept_;  ///< flat tensors: one per minibatch (reproducible) or
                                           ///< one running sum
  bool last_is_left_ = false;              ///< leave_last()
  std::size_t contributions_ = 0;          ///< how many of them this step has filled
  Array<Space, std::uint64_t> bounds_;     ///< [tensors] bits of the largest magnitude, a
                                           ///< float32 number
  Array<Space, double> units_;             ///< [tensors] what an integer counts: a power of
                                           ///< two; or NaN
  Array<Space, std::int64_t> fixed_;       ///< the contributions' sum in fixed point

  Stage stage_ = Stage::kNotBegun;  ///< of what begin() has begun
  std::int64_t begun_contributions_ = 0;
  Sums begun_sums_;
  int number_ = 0;
  PendingAllReduce<std::uint64_t> pending_bounds_;  ///< last, these: they use the arrays
  PendingAllReduce<std::int64_t> pending_fixed_;
  PendingAllReduce<float> pending_floats_;
};

using GradientReduction = GradientReductionOn<Cpu>;

/// Where a network's gradient is cut: of each piece how many groups there are up to its end. A
/// piece but the last has 64 KiB in float32 or more, and 8 KiB or more for each rank; one rank has
/// one piece.
std::vector<std::size_t> reduction_pieces(std::span<const GradientGroup> groups, int ranks);

/// The gradient of a network in a step, piece by piece.
template <class Space>
class NetworkReductionOn {
 public:
  using Gradients = std::vector<Matrix<float, Space>>;  ///< one for each tensor of the network

  /// `comm` must outlive it.
  NetworkReductionOn(const Space& space, const CommunicatorOn<Space>& comm, bool reproducible,
                     std::vector<GradientGroup> groups);

  /// Are there several pieces? Then the last minibatch of a step may be added group by group.
  bool in_pieces() const { return pieces_.size() > 1; }

  /// Adds a minibatch of the step. `last`: of this rank; finish() then has these gradients.
  void add(const Gradients& gradients, bool last = false);
  /// Of this rank's last minibatch of the step the first `groups` groups are there, more at each
  /// call and in the end all. What is complete of them is on its way to other ranks.
  void add_groups(Gradients& gradients, std::size_t groups, std::int64_t contributions);
  /// Collective, as GradientReductionOn::finish.
  void finish(std::int64_t contributions, Gradients& gradients);

 private:
  struct Piece {
    std::vector<std::size_t> tensors;  ///< of the network
    std::unique_ptr<GradientReductionOn<Space>> reduction;
  };
  template <class OneMatrix, class Of>
  static std::vector<OneMatrix*> tensors_of(const Piece& piece, Of& gradients);
  void begin_pieces(std::size_t until, Gradients& gradients, std::int64_t contributions);
  bool advance_from(std::size_t first, bool waits);

  bool reproducible_;
  std::vector<Piece> pieces_;
  std::vector<std::size_t> ends_;  ///< reduction_pieces()
  std::size_t begun_ = 0;          ///< pieces that are under way
};

/// *flag becomes 1 when any number of the tensors is not finite, and otherwise stays. `flag`:
/// device memory.
void note_not_finite(const Cuda&, const std::vector<const Matrix<float, Cuda>*>& tensors, int* flag);

/// Collective. The sum of all ranks' numbers, exact in fixed point: independent of which rank holds
/// which. NaN when any is not finite.
double reproducible_sum(const Communicator& comm, const std::vector<double>& mine);

}  // namespace espalier
