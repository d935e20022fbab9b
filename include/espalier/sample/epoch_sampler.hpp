// Draws the minibatches of an epoch in bulk, ahead of the steps that use them.
//
// The epoch's batches are cut into windows of k = `bulk` batches over all ranks. A window is sampled, by all
// ranks together, when a step first needs a batch of it; k need not divide anything.
#pragma once

#include <cstdint>
#include <map>

#include "espalier/comm/grid.hpp"
#include "espalier/sample/epoch_plan.hpp"
#include "espalier/sample/sampler.hpp"

namespace espalier {

/// What was sampled; sums over minibatches, on one rank or (after `total`) over all.
struct SampleCounts {
  std::uint64_t digest = 0;
  std::int64_t batches = 0;
  std::int64_t sampled_edges = 0;
  std::int64_t input_rows = 0;

  void add(const Minibatch& minibatch);
};

/// Collective. The sum over all ranks.
SampleCounts total(const SampleCounts& mine, const Communicator& comm);

class EpochSampler {
 public:
  EpochSampler(const Grid& grid, Sampler& sampler, const EpochPlan& plan, std::int64_t bulk);

  /// Collective. Samples windows until all batches below `end` are there.
  void sample_until(const Cpu& cpu, std::int64_t end);

  /// This rank's batches in [begin, end), ascending; they leave the sampler. Needs sample_until(end) before.
  std::vector<Minibatch> take(std::int64_t begin, std::int64_t end);

  /// What this rank has sampled so far.
  const SampleCounts& counts() const { return counts_; }

 private:
  const Grid& grid_;
  Sampler& sampler_;
  const EpochPlan& plan_;
  std::int64_t bulk_;
  std::int64_t sampled_ = 0;
  std::map<std::int64_t, Minibatch> waiting_;
  SampleCounts counts_;
};

/// How many minibatches to sample at once: the most that fit in `bytes` on one rank when batches are dealt
/// out evenly over `ranks`, at least one per rank, at most the epoch's. A frontier is bounded by its picks
/// and by the number of nodes; -1 counts as the mean degree. `layer_wise`: picks are per layer, not per vertex.
std::int64_t automatic_bulk(const SamplerShape& shape, bool layer_wise, std::int64_t batch_size,
                            std::int64_t batches, int ranks, std::int64_t nodes, std::int64_t edges,
                            std::int64_t bytes);

}  // namespace espalier
