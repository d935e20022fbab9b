// The methods of edge_parts.hpp, one by one.
#pragma once

#include "espalier/partition/edge_parts.hpp"

namespace espalier {

/// Ours: budgets, hubs taken piece by piece, no part beyond 1.02 of the mean, then even_out().
Buffer<std::uint16_t> expand_evenly(const EdgeCutTask& task);
/// DistributedNE, with tau = 1.01.
Buffer<std::uint16_t> expand_as_dne(const EdgeCutTask& task);
/// AdaDNE as it is published.
Buffer<std::uint16_t> expand_as_adadne(const EdgeCutTask& task);
/// HDRF: one pass over the pairs on rank 0.
Buffer<std::uint16_t> stream_pairs(const EdgeCutTask& task);

/// Collective. Moves vertices that one part has alone, with their pairs, to one that has all their
/// neighbours, until parts are even in vertices and pairs, or nothing more can move. No vertex gets
/// more parts.
void even_out(const EdgeCutTask& task, Buffer<std::uint16_t>& parts);

}  // namespace espalier
