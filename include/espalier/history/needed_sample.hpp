// Samples of which only what is needed is drawn: history says of each list which rows hit, before
// their own neighbours are drawn (history/prune.hpp has the words).
//
//     N[L]     the seeds
//     B'[l]    the rows N[l] of the sample's B[l]; D[l-1] = N[l], then its other columns, ascending
//     N[l-1]   D[l-1] without the hits
//
// Law: a draw is keyed by (seed, epoch, batch, layer, vertex), so the result is prune() of the
// whole sample and the same hits, in every array but the positions: here they are the columns.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "espalier/history/prune.hpp"
#include "espalier/sample/sampler.hpp"

namespace espalier {

/// Which rows of H[layer] hit, of the lists D[layer] of all batches, in their order; lists are
/// memory of the space. Of each list as many flags, memory of the space that stays until the next
/// call, or none: no hit. Called once for each of the layers L-1 .. 1, on every rank.
template <class Space>
using FindHits = std::function<std::vector<std::span<const std::uint8_t>>(
    int layer, std::span<const std::span<const std::int64_t>> lists)>;

/// `before` is empty: nobody knows it.
template <class Space>
struct NeededSampleOn {
  std::vector<PrunedMinibatchOn<Space>> minibatches;
  std::uint64_t digest = 0;  ///< sample_digest of the edges that were drawn
};

/// Collective over the sampler's grid. Of `layers` layers. On a GPU the host waits for every list.
template <class Space>
NeededSampleOn<Space> sample_needed(const Space& space, SamplerOn<Space>& sampler, std::size_t layers,
                                    std::span<const SeedBatch> batches, std::uint64_t seed,
                                    std::uint64_t epoch, const FindHits<Space>& find_hits);

}  // namespace espalier
