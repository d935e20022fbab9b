// A graph that fits into one process in two parts, by METIS (Karypis, Kumar 1998), with every kind
// of weight balanced.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "espalier/base/buffer.hpp"
#include "espalier/partition/order.hpp"

namespace espalier {

/// A symmetric graph without loops.
struct SmallGraph {
  Buffer<std::int64_t> indptr = Buffer<std::int64_t>(1, 0);  ///< [nodes + 1]
  Buffer<std::int32_t> neighbours;                           ///< [entries]
  Buffer<std::int64_t> weights;                              ///< [entries] > 0
  Buffer<ClusterWeights> vertex_weights;                     ///< [nodes]

  std::int64_t nodes() const { return static_cast<std::int64_t>(indptr.size()) - 1; }
};

struct BisectionOptions {
  double first_share = 0.5;                              ///< of the first part, of every kind
  std::array<double, kBalanceNames.size()> tolerance{};  ///< a part over its share, at most: 1.01
  int tries = 1;                                         ///< cuts, of which the best is taken
  std::uint64_t seed = 0;
};

/// The part, 0 or 1, of each vertex. Weights that METIS's 32 bits do not hold are scaled down, so
/// balance is then near. UserError(kUsage) without METIS, UserError(kMemory) for 2^31 entries.
std::vector<std::uint8_t> metis_bisect(const SmallGraph& graph, const BisectionOptions& options);

}  // namespace espalier
