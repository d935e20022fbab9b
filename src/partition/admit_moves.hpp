// Which of the moves that vertices propose in a round of refinement are made: those of the largest
// gains, down to a gain and a hash up to which all of them fit into the parts that they enter. A
// part counts all that would enter it, whatever becomes of it elsewhere, and nothing that leaves;
// so limits hold exactly, and each part decides for itself.
#pragma once

#include <cstdint>
#include <vector>

#include "cluster_tree.hpp"
#include "level_graph.hpp"

namespace espalier {

/// What is in, or enters, each part of each scale: [tree.nodes()].
using PartWeights = std::vector<ClusterWeights>;

/// Collective. The sum over ranks.
void add_up(const Communicator& comm, std::vector<ClusterWeights>& weights);

/// A vertex that would go to another cluster.
struct Move {
  std::int64_t vertex;  ///< its place
  ClusterWeights weight;
  std::uint16_t from, to;  ///< codes
  std::int64_t gain;       ///< by how much the price falls; below 0 only when forced
  std::uint64_t hash;      ///< in what order moves of like gains are admitted
  std::int32_t forced;     ///< the part above its limit that sends the vertex away, or 0
};

/// Collective. Of `moves`, every rank its own, those that are made, in their order. `weights`: of
/// the parts as they are. Of those that are forced out of a part only as many as it takes.
std::vector<Move> admit_moves(const Communicator& comm, const ClusterTree& tree, const PartWeights& limits,
                              const PartWeights& weights, const std::vector<Move>& moves);

}  // namespace espalier
