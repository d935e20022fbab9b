// Better clusters for one level: vertices move to clusters that they are more connected with, at
// all scales at once. The price of an edge is the number of scales (2, 4, 8, ... parts: depths of
// the tree of clusters) at which its ends are in different parts, those of few parts counted twice.
// So the price of a clustering is the weighted sum of the cuts of all scales, and clusters that are
// close in number attract each other.
//
// Synchronous rounds. A vertex proposes, from the state of the last round, the move that lowers its
// price most and for which there is room in every part that it would enter. Of the moves into a
// part those of the largest gains are accepted, down to a gain (and a hash) up to which all of them
// fit: so a limit holds exactly, whoever else moves. Parts above their limits send vertices away,
// also at a loss. Only half of the vertices may move in a round, as neighbours that change places
// win nothing; a round that leaves more above the limits, or as much at a higher price, is taken
// back, and the next ones move fewer. Integers and hashes decide, so the result is the same for
// every number of ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "cluster_tree.hpp"
#include "level_graph.hpp"

namespace espalier {

/// How good a clustering is.
struct ClusteringState {
  std::int64_t price = 0;   ///< sum over edges, each once, of weight times price_between
  std::int64_t excess = 0;  ///< weight above limits, over all parts and kinds
};

struct RefinementOptions {
  std::vector<ClusterWeights> limits;  ///< [tree.nodes()]
  std::uint64_t seed = 0;
  int rounds = 16;
};

/// Collective. The most that each part of each scale may weigh: its share of all, and more the
/// smaller it is; [tree.nodes()].
std::vector<ClusterWeights> part_limits(const Communicator& comm, const LevelGraph& graph,
                                        const ClusterTree& tree);

/// Collective. Improves codes [own], each a cluster's code; returns what came out. The excess does
/// not grow, nor does the price unless the excess falls; in no rounds nothing changes.
ClusteringState refine_clusters(const Communicator& comm, const LevelGraph& graph, const ClusterTree& tree,
                                const RefinementOptions& options, Buffer<std::uint16_t>& codes);

}  // namespace espalier
