// A sampled minibatch: one block per layer and one list of vertices.
//
// Destinations are a prefix of sources in every layer, so F[L] (the seeds) is a prefix of F[L-1], ... , of
// F[0]: the one list `vertices` = F[0] names them all. blocks[l-1] is B[l] with blocks[l-1].rows = |F[l]| and
// .columns = |F[l-1]|.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "espalier/sparse/csr.hpp"

namespace espalier {

struct Minibatch {
  std::int64_t number = 0;        ///< which batch of the epoch
  Buffer<std::int64_t> vertices;  ///< F[0]: the input vertices, global ids; the seeds come first
  std::vector<Block> blocks;      ///< blocks[0] is used by layer 1, blocks[L-1] by layer L

  std::int64_t seeds() const { return blocks.back().rows; }
  std::int64_t sampled_edges() const {
    std::int64_t edges = 0;
    for (const auto& block : blocks) edges += block.entries();
    return edges;
  }
};

/// A minibatch on a GPU. Its arrays are parts of those of the window it was sampled in, which `memory` keeps.
struct DeviceMinibatch {
  std::int64_t number = 0;
  std::span<const std::int64_t> vertices;  ///< F[0] in device memory
  std::vector<DeviceBlock> blocks;
  std::shared_ptr<const void> memory;

  std::int64_t seeds() const { return blocks.back().rows; }
  std::int64_t sampled_edges() const {
    std::int64_t edges = 0;
    for (const auto& block : blocks) edges += block.entries();
    return edges;
  }
};

template <class Space>
using MinibatchOn = ForSpace<Space, Minibatch, DeviceMinibatch>;

/// The sum modulo 2^64, over all sampled edges, of a hash of (batch, layer, destination, source, value bits):
/// equal digests mean equal samples (design, 4.1). Digests of minibatches add up to the digest of an epoch.
std::uint64_t sample_digest(const Minibatch& minibatch);

/// The sum of the digests of many minibatches.
std::uint64_t sample_digests(const Cpu& cpu, std::span<const Minibatch> minibatches);
std::uint64_t sample_digests(const Cuda& cuda, std::span<const DeviceMinibatch> minibatches);

/// Copies; for tests, and for samplers whose arithmetic runs on the host.
DeviceMinibatch to_device(const Cuda& cuda, const Minibatch& minibatch);
Minibatch to_host(const Cuda& cuda, const DeviceMinibatch& minibatch);

}  // namespace espalier
