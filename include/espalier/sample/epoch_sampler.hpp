// Draws the minibatches of an epoch in bulk, ahead of the steps that use them.
//
// The epoch's batches are cut into windows of k = `bulk` batches over all ranks. A window is
// sampled, by all ranks together, when a step first needs a batch of it, or before, by a thread of
// its own, where the caller says so; k need not divide anything.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <type_traits>
#include <vector>

#include "espalier/base/work_queue.hpp"
#include "espalier/comm/grid.hpp"
#include "espalier/sample/epoch_plan.hpp"
#include "espalier/sample/sampler.hpp"

namespace espalier {

/// What was sampled; sums over minibatches, on one rank or (after sum_over_ranks) over all.
struct SampleCounts {
  std::uint64_t digest = 0;
  std::int64_t batches = 0;
  std::int64_t sampled_edges = 0;
  std::int64_t input_rows = 0;

  template <class Space>
  void add(const Space& space, std::span<const MinibatchOn<std::type_identity_t<Space>>> minibatches) {
    digest += sample_digests(space, minibatches);
    for (const auto& minibatch : minibatches) {
      digest += minibatch.examples_digest;
      ++batches;
      sampled_edges += minibatch.sampled_edges();
      input_rows += std::ssize(minibatch.vertices);
    }
  }
  /// `times`: -1 takes away.
  void add(const SampleCounts& other, std::int64_t times = 1) {
    digest += static_cast<std::uint64_t>(times) * other.digest;  // modulo 2^64
    batches += times * other.batches;
    sampled_edges += times * other.sampled_edges;
    input_rows += times * other.input_rows;
  }
};

/// Collective. The sum over all ranks.
SampleCounts sum_over_ranks(const SampleCounts& mine, const Communicator& comm);

/// The thread that samples ahead, and the ranks of the grid that its sampler is made over: one of
/// its own (Communicator::duplicate), as the thread communicates beside the caller.
struct SampleAhead {
  const Communicator& world;
  WorkQueue queue = WorkQueue(true);
};

template <class Space>
class EpochSamplerOn {
 public:
  /// With `ahead` windows are sampled by its thread over its ranks; what they moved is booked in
  /// `grid`'s ledger when they are waited for, in the epoch that uses them. From batch `first` on.
  /// On a GPU blocks of the layers `transposed`, from 0, come with their transposes.
  EpochSamplerOn(const Grid& grid, SamplerOn<Space>& sampler, const EpochPlan& plan, std::int64_t bulk,
                 SampleAhead* ahead = nullptr, std::int64_t first = 0,
                 std::span<const std::size_t> transposed = {});
  /// Waits for a window under way.
  ~EpochSamplerOn();
  EpochSamplerOn(const EpochSamplerOn&) = delete;
  EpochSamplerOn& operator=(const EpochSamplerOn&) = delete;

  /// Collective. Begins the next window, if there is one: the thread does, or, without one, this
  /// call. Nothing may be under way. Memory: this window beside what take() has not taken.
  void begin_window(const Space& space);

  /// Was a window begun that no sample_until has asked for yet?
  bool under_way() const { return begun_ != sampled_; }
  /// Has the last window of the epoch been begun?
  bool all_begun() const { return begun_ == plan_.batches(); }

  /// Collective. Samples windows, or waits for them, until all batches below `end` are there.
  void sample_until(const Space& space, std::int64_t end);

  /// This rank's batches in [begin, end), ascending, out of the sampler; after sample_until(end).
  std::vector<MinibatchOn<Space>> take(std::int64_t begin, std::int64_t end);

  /// Batches below are there, with one rank or another, or were taken.
  std::int64_t sampled() const { return sampled_; }

  /// This rank's batches that are there and not taken, by number.
  const std::map<std::int64_t, MinibatchOn<Space>>& waiting() const { return waiting_; }

  /// What this rank has sampled so far; no window may be under way.
  const SampleCounts& counts() const { return counts_; }

  /// The part of counts() that take() has taken. The thread must be at rest.
  SampleCounts counts_of_taken(const Space& space) const;

 private:
  void finish_window();

  const Grid& grid_;
  SamplerOn<Space>& sampler_;
  const EpochPlan& plan_;
  std::int64_t bulk_;
  SampleAhead* ahead_;
  std::vector<std::size_t> transposed_;
  std::int64_t begun_ = 0;    ///< batches below are in windows that were begun
  std::int64_t sampled_ = 0;  ///< batches below are in windows that are there
  std::map<std::int64_t, MinibatchOn<Space>> waiting_;
  std::vector<MinibatchOn<Space>> window_;  ///< of batches [sampled_, begun_), the thread's
  SampleCounts counts_;                     ///< the same
  std::shared_future<void> window_done_;    ///< with a thread: of the window that was begun last
  Traffic moved_;  ///< the same: what windows moved since the last one was waited for
};

using EpochSampler = EpochSamplerOn<Cpu>;

/// Entries between seeds (SeedBatch::excluded_edges) leave the blocks of `minibatches`, which
/// belong to `batches`; their digests then say so. Values of a row and relation that are left grow
/// so that their sum is what it was: a mean stays one. Of a matrix of A + I the vertex itself
/// always stays, as it is. Lists of vertices stay, too. On a GPU the host waits once for a block
/// that loses entries.
template <class Space>
void exclude_edges(const Space& space, std::span<const SeedBatch> batches,
                   std::vector<MinibatchOn<Space>>& minibatches);

/// How many minibatches to sample at once: the most that fit in `bytes` on one rank when batches
/// are dealt out evenly over `ranks`, at least one per rank, at most the epoch's. A frontier is
/// bounded by its picks and by the number of nodes; -1 counts as the mean degree. `block_rows`:
/// with one, every row of the matrix is local and none is fetched.
std::int64_t automatic_bulk(const SamplerShape& shape, const SamplerKind& kind, std::int64_t batch_size,
                            std::int64_t batches, int ranks, int block_rows, std::int64_t nodes,
                            std::int64_t edges, std::int64_t bytes);

}  // namespace espalier
