// A minibatch without what history makes needless (FreshGNN, algorithm 1 and section 5).
//
// Where a row of H[l] comes from a cache of embeddings (a *hit*), nothing below need be computed
// for its sake. From the seeds down, over positions of the lists F[l]:
//
//     N[L] = F[L]                                          computed: all seeds
//     D[l] = N[l+1] and the sources of those rows of B[l+1]     needed, l = L-1 .. 0
//     C[l] = the hits among D[l]; N[l] = D[l] without them      read from the cache; computed
//     C[0] is empty: N[0] = D[0] are the input vertices
//
// So each needed row is computed or cached, once, and a hit that nobody needs is not read.
//
// The result is a function of (minibatch, hits) only. B'[l]: the rows N[l] of B[l], each whole and
// its entries in their order, with columns D[l-1]. Rows leave the dense products too. D[l-1] =
// N[l], then the rest ascending by vertex, so the rows of a block are its first columns, as in a
// Minibatch; N[l] and C[l] are in the order of D[l]. So nothing shows where what left has stood,
// and who draws only what is needed (history/prune.hpp) has the same. The rows of H[l-1]
// come from two places (`place`), as a row that is computed at l may be a hit at l-1.
//
// Without hits it has the lists, blocks and runs of the minibatch, as long as each column of a
// block is one of its rows or has an entry (which samplers see to).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "espalier/sample/minibatch.hpp"
#include "espalier/sample/sampler.hpp"

namespace espalier {

/// hits[l-1][i] != 0: row i of H[l] (vertex vertices[i]) comes from the cache, i < |F[l]|, for l =
/// 1 .. L-1; memory of the space. An empty span: no hit in that layer; no spans: none at all.
using HistoryHits = std::span<const std::span<const std::uint8_t>>;

/// What becomes of a row of H[l].
enum class RowState : std::uint8_t { kUnneeded, kComputed, kCached };

/// Some rows of H[l], each once: arrays of the space with an element for each.
struct PrunedRows {
  std::span<const std::int64_t> vertices;   ///< global ids
  std::span<const std::int64_t> positions;  ///< in F[l]
  std::span<const std::int64_t> columns;    ///< in D[l]: which column of B'[l+1] it is; ascending

  std::int64_t size() const { return std::ssize(vertices); }
};

/// The rows of H[l] that layer l+1 reads, l = 0 .. L-1.
struct PrunedLayer {
  std::span<const std::int64_t> place;  ///< [|D[l]|] memory of the space: k >= 0 is row k of N[l],
                                        ///< ~j is row j of C[l]: as gather_rows (dense/gather.hpp)
                                        ///< takes it
  PrunedRows computed;                  ///< N[l]; for l = 0 the input vertices
  PrunedRows cached;                    ///< C[l]
  bool in_order = false;                ///< nothing is cached: place[k] is k, H[l] needs no gather

  /// |D[l]|
  std::int64_t needed() const { return std::ssize(place); }
};

/// What a minibatch costs: the rows of features that are fetched, the rows of all H[l] with l > 0
/// that are computed, the entries of all blocks.
struct PrunedSize {
  std::int64_t inputs = 0, rows = 0, entries = 0;
};

/// What is left. Its arrays are memory of the space, its own; copies share them.
template <class Space>
struct PrunedMinibatchOn {
  std::int64_t number = 0;               ///< which batch of the epoch
  std::vector<BlockView<Space>> blocks;  ///< [L] blocks[l-1] is B'[l]: |N[l]| x |D[l-1]|, with the
                                         ///< runs of types of its columns where there are types
  std::vector<PrunedLayer> layers;       ///< [L] layers[l] is of H[l]
  PrunedSize before, after;
  std::shared_ptr<const void> memory;  ///< keeps what the others point to

  /// D[0]: whose features are needed, in the order of the columns of B'[1].
  std::span<const std::int64_t> inputs() const& { return layers.front().computed.vertices; }
  void inputs() const&& = delete;
  std::int64_t seeds() const { return blocks.back().rows; }
};

/// Not collective. On a GPU the host waits for the sizes of each layer. Fails where there are hits
/// for another number of layers or rows than the minibatch has.
template <class Space>
PrunedMinibatchOn<Space> prune(const Space& space, const MinibatchOn<Space>& minibatch, HistoryHits hits);

// Samples of which only what is needed is drawn: history says of each list which rows hit, before
// their own neighbours are drawn (history/prune.hpp has the words).
//
//     N[L]     the seeds
//     B'[l]    the rows N[l] of the sample's B[l]; D[l-1] = N[l], then its other columns, ascending
//     N[l-1]   D[l-1] without the hits
//
// Law: a draw is keyed by (seed, epoch, batch, layer, vertex), so the result is prune() of the
// whole sample and the same hits, in every array but the positions: here they are the columns.

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
