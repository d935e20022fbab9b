// Entries between seeds that leave the blocks of sampled minibatches (SeedBatch::left_out).
//
// Values of a row and relation that are left, but for that of the vertex itself, grow so that their
// sum is what it was. So a mean stays one. Lists of vertices stay as they are, even if nobody reads
// some of their rows any more.
#pragma once

#include <span>
#include <vector>

#include "espalier/sample/examples.hpp"
#include "espalier/sample/minibatch.hpp"

namespace espalier {

/// Of `minibatches`, which belong to `batches`. On a GPU the host waits once for each block of
/// those that lose entries; the values have the CPU's bits.
template <class Space>
void leave_out(const Space& space, std::span<const SeedBatch> batches,
               std::vector<MinibatchOn<Space>>& minibatches);

}  // namespace espalier
