// An order by bisection from the top down: a set of vertices that is to become `clusters` clusters
// is split into two, one for each half of the clusters, and so on, round after round. So the
// clusters of any aligned stretch of 2^k were one set, and few edges leave it.
//
// The halves of a set may stand either way round. They stand so that fewer edges reach past the
// other half: what of the rest of the graph comes before the set in the sequence, and what after,
// is known when it is split. That is what makes cuts good that are no power of two.
//
// A good first cut may leave no good second one. So the first three rounds are made several times,
// and go on from where the edges cut after each of the rounds are fewest in sum.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "order_pattern.hpp"

namespace espalier {

/// Some vertices of a graph, and the edges between them.
struct SubGraph {
  std::vector<std::int32_t> vertices;         ///< ids in the graph; the others are places here
  std::vector<std::int32_t> indptr, indices;  ///< [n + 1], symmetric
  std::size_t kinds = kBalanceNames.size();   ///< and, of several types, two of each
  std::vector<std::int32_t> weights;          ///< [n, kinds] of a type 1, entries; else 0

  std::int32_t size() const { return static_cast<std::int32_t>(vertices.size()); }
};

/// What is to be split.
struct WantedSplit {
  int first = 0, second = 0;  ///< clusters that either side will be
  int round = 0;              ///< from 0: the set is one of about 2^round
  std::uint64_t key = 0;      ///< names this split among all, for random numbers
};

/// The side, 0 or 1, of each vertex; weights of all kinds as first : second.
using Bisector = std::function<std::vector<std::int32_t>(SubGraph& part, const WantedSplit& split)>;

/// The cluster of each vertex of a graph, none empty. Fewer than 2^31 entries; clusters <= nodes.
/// `beginnings`: how often the first rounds are made.
std::vector<std::uint16_t> order_by_bisection(const WholePattern& graph, int clusters, std::uint64_t seed,
                                              int beginnings, const Bisector& bisect);

}  // namespace espalier
