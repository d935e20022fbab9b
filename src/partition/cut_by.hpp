// The methods of edge_parts.hpp, one by one.
#pragma once

#include "espalier/partition/edge_parts.hpp"

namespace espalier {

/// Ours: budgets, hubs taken piece by piece, all parts at once, and an eighth of them at a time;
/// then even_out(). Of both, what leaves the largest part fewer vertices.
Buffer<std::uint16_t> expand_evenly(const EdgeCutTask& task);
/// DistributedNE, with tau = 1.01.
Buffer<std::uint16_t> expand_as_dne(const EdgeCutTask& task);
/// AdaDNE as it is published.
Buffer<std::uint16_t> expand_as_adadne(const EdgeCutTask& task);
/// HDRF: one pass over the pairs on rank 0.
Buffer<std::uint16_t> stream_pairs(const EdgeCutTask& task);

/// Collective. Moves pairs of one vertex to parts that both ends have, for fewer copies and until
/// parts are even in vertices and pairs, or nothing more can move. No vertex gets more parts.
/// Returns the most vertices of a part.
std::int64_t even_out(const EdgeCutTask& task, Buffer<std::uint16_t>& parts);

}  // namespace espalier
