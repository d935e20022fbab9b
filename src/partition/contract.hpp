// The next coarser level: A_c = P^T A P, where P(v, c) = 1 when vertex v becomes part of vertex c.
// The entries of a rank's rows, renamed and added up, travel to the owners of their coarse rows,
// which add up what comes from all ranks: int64 sums, so there is one result. The diagonal, the
// edges inside of coarse vertices, is taken out and its sum kept.
#pragma once

#include <cstdint>

#include "level_graph.hpp"

namespace espalier {

struct Contraction {
  LevelGraph coarse;
  Buffer<std::int64_t> parent;  ///< [own] the coarse id of each own vertex of the fine level
};

/// Collective. `labels` [own]: vertices with equal labels, ids of the level, become one. Coarse ids
/// ascend with the labels, whatever the number of ranks.
Contraction contract(const Communicator& comm, const LevelGraph& fine, const Buffer<std::int64_t>& labels);

}  // namespace espalier
