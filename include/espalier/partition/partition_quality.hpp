// How good an order is for a graph, cut into so many parts.
#pragma once

#include <span>
#include <vector>

#include "espalier/partition/partition_methods.hpp"

namespace espalier {

struct PartsQuality {
  int parts = 0;
  /// Of the edges, the fraction whose ends are in different parts; no loops, and what several
  /// relations join counts once.
  double cut = 0;
  /// The mean over vertices of how many parts want it: own it, or have a row that reads it.
  double replication = 1;
  std::vector<double> balances;  ///< as balances_of
};

/// 2, 4, 8, ... parts: as far as there are clusters, and 64.
std::vector<int> shown_parts(int clusters);

/// Collective. Reads the task's graph once more, in pieces of bounded size. `mine`: the clusters of
/// my vertices; 2 bytes per vertex of the graph are taken on every rank, and a bit for each of
/// `parts` per vertex of its own.
std::vector<PartsQuality> quality_of(const VertexPartitionTask& task, std::span<const std::uint16_t> mine,
                                     const ClusterContents& contents, std::span<const int> parts);

}  // namespace espalier
