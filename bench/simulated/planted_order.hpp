// The order that a graph of skewed_rows.hpp was planted with: its clusters in their ring, begun at
// cluster 0. It stands for what `espalier partition` finds in a graph with communities; the parts
// of a grid and the groups of local batches are cut from it by the program's own code.
#pragma once

#include <algorithm>
#include <span>

#include "espalier/base/row_range.hpp"
#include "espalier/partition/order.hpp"
#include "simulated/skewed_rows.hpp"

namespace espalier::bench {

/// Collective. `training`: ascending.
inline Order planted_order(const Communicator& world, const SkewedRows& rows, std::int64_t nodes,
                           std::span<const std::int64_t> training) {
  constexpr std::size_t kVertices = 0, kEdges = 1, kTrain = 2;  // of kBalanceNames
  std::vector<ClusterWeights> weights(SkewedRows::kClusters, ClusterWeights{});
  Buffer<std::uint16_t> mine;
  const auto range = even_range(nodes, world.size(), world.rank());
  for (auto v = range.begin; v < range.end; ++v) {
    const auto cluster = static_cast<std::uint16_t>(rows.cluster_of(v));
    mine.push_back(cluster);
    weights[cluster][kVertices] += 1;
    weights[cluster][kEdges] += rows.size_of(v);
    weights[cluster][kTrain] += std::ranges::binary_search(training, v);
  }
  world.all_reduce(std::span(weights[0].data(), weights.size() * kBalanceNames.size()), Reduction::kSum,
                   "setup");
  const auto all = world.all_gather_v(std::span<const std::uint16_t>(mine), "setup");
  return {{.nodes = nodes, .method = "planted", .pattern = {}, .weights = std::move(weights)},
          {all.begin(), all.end()}};
}

}  // namespace espalier::bench
