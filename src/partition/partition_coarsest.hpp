// The clusters of the coarsest level, found on rank 0: bisections by METIS down the tree of
// clusters. Of two halves that comes first which is connected more with what lies before.
#pragma once

#include <cstdint>

#include "cluster_tree.hpp"
#include "level_graph.hpp"

namespace espalier {

/// Collective. The code (ClusterTree) of each own vertex. UserError on every rank: kUsage without
/// METIS, kMemory where METIS runs short of it or there are 2^31 entries.
Buffer<std::uint16_t> partition_coarsest(const Communicator& comm, const LevelGraph& graph,
                                         const ClusterTree& tree, std::uint64_t seed);

}  // namespace espalier
