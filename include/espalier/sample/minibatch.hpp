// A sampled minibatch: one block per layer and one list of vertices.
//
// Destinations are a prefix of sources in every layer, so F[L] (the seeds) is a prefix of F[L-1],
// ... , of F[0]: the one list `vertices` = F[0] names them all. The new vertices of a layer ascend,
// so those of one type stand together: a list is a few runs of types, those of F[l] the first of
// F[l-1]'s. blocks[l-1] is B[l].
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "espalier/base/host_device.hpp"
#include "espalier/base/shared_list.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

/// Its arrays are usually parts of those of all minibatches it was sampled with. Copies share them.
template <class Space>
struct MinibatchOn {
  std::int64_t number = 0;                 ///< which batch of the epoch
  std::span<const std::int64_t> vertices;  ///< F[0]: the input vertices, global ids, seeds first
  std::vector<BlockView<Space>> blocks;    ///< blocks[0] is used by layer 1, blocks[L-1] by layer L
  std::shared_ptr<const void> memory;      ///< keeps what the others point to
  /// [types] where the vertices of each end, as in the matrix; empty: one type, or nobody says.
  SharedList<std::int64_t, Space> type_ends = {};
  std::uint64_t examples_digest = 0;  ///< SeedBatch::digest, which belongs to its own
  bool adds_self = false;             ///< DistCsr::adds_self of the matrix

  std::int64_t seeds() const { return blocks.back().rows; }
  std::int64_t sampled_edges() const {
    std::int64_t edges = 0;
    for (const auto& block : blocks) edges += block.entries();
    return edges;
  }
};

using Minibatch = MinibatchOn<Cpu>;

/// The sum modulo 2^64, over all sampled edges, of a hash of (batch, layer, destination, source,
/// value bits, and the relation where there are several): equal digests mean equal samples (design,
/// 4.1). Digests add up. The first block is of layer `first`.
std::uint64_t sample_digest(const Minibatch& minibatch, std::int64_t first = 1);

/// The sum of the digests of many minibatches.
std::uint64_t sample_digests(const Cpu& cpu, std::span<const Minibatch> minibatches, std::int64_t first = 1);
std::uint64_t sample_digests(const Cuda& cuda, std::span<const MinibatchOn<Cuda>> minibatches,
                             std::int64_t first = 1);

// The hash of an edge absorbs (base/host_device.hpp) its batch, layer, destination, source and
// value bits.

/// The state after the batch and the layer, blocks[layer - 1].
ESPALIER_HD inline std::uint64_t hash_of_layer(std::int64_t batch, std::int64_t layer) {
  return absorb(absorb(0, batch), layer);
}

/// The state after the source, not mixed yet. The relation stands above the vertex.
ESPALIER_HD inline std::uint64_t with_source(std::uint64_t of_row, std::int64_t source,
                                             std::uint64_t relation = 0) {
  return of_row ^ static_cast<std::uint64_t>(source) ^ relation << 48;
}

/// The whole hash from with_source() and the bits of the value.
ESPALIER_HD inline std::uint64_t finish_edge(std::uint64_t of_row_and_source, std::uint32_t value_bits) {
  return mix(mix(of_row_and_source) ^ value_bits);
}

}  // namespace espalier
