// An order of a graph: every vertex is in one of some 1,024 small clusters, and clusters that are
// close in number are densely connected. Made once (`espalier partition`), it serves every grid:
// the parts of a grid are cuts of the sequence of clusters, weighted by what is to be even. So a
// part of few ranks consists of parts of many, and the ranks of a node have neighbouring parts.
// (DistDGLv2, Zheng et al. 2022, 5.3, makes a partition for each number of machines.)
//
// The file (HDF5):
//
//   /          attributes format = "espalier-order", version = 1; method; pattern: digest of the
//              graph's edges, 16 hex digits
//   /cluster   uint16 [n]            the cluster of each vertex
//   /weights   int64 [clusters, 5]   what is in each, in the order of kBalanceNames
//
// and, of a graph of several vertex types,
//
//   /               attribute types: their names, with commas between them
//   /type_weights   int64 [clusters, 2 types]   of each type its vertices, and the entries of their
//                                               rows
//
// All have an attribute digest (file/content_digest.hpp), which another program may leave out.
// Orders of the same graph by the same method, options and seed are the same bytes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "espalier/base/output_file.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/file/content_digest.hpp"
#include "espalier/partition/ownership.hpp"

namespace espalier {

/// What parts have evenly: vertices, entries of their rows, and the vertices of each split.
inline constexpr std::array<const char*, 5> kBalanceNames = {"vertices", "edges", "train", "valid", "test"};
inline constexpr std::size_t kBalances = kBalanceNames.size();
inline constexpr std::size_t kTrainWeight = 2;
using ClusterWeights = std::array<std::int64_t, kBalances>;

inline ClusterWeights& operator+=(ClusterWeights& sum, const ClusterWeights& more) {
  for (std::size_t kind = 0; kind < kBalances; ++kind) sum[kind] += more[kind];
  return sum;
}
inline ClusterWeights& operator-=(ClusterWeights& sum, const ClusterWeights& less) {
  for (std::size_t kind = 0; kind < kBalances; ++kind) sum[kind] -= less[kind];
  return sum;
}

inline constexpr std::int64_t kMostClusters = 1 << 16;

struct VertexPartitionInfo {
  std::int64_t nodes = 0;
  std::string method;                           ///< how it was made
  std::optional<std::uint64_t> pattern;         ///< digest of the graph's edges, where known
  std::vector<ClusterWeights> weights;          ///< [clusters]
  std::vector<std::string> types = {};          ///< the names of several vertex types; else empty
  std::vector<std::int64_t> type_weights = {};  ///< [clusters, 2 types] vertices, entries of each

  int clusters() const { return static_cast<int>(weights.size()); }
};

struct Order {
  VertexPartitionInfo info;
  std::vector<std::uint16_t> cluster;  ///< [n] of each vertex
};

/// The digest of a graph's edges: of /graph/indptr and /graph/indices, when both are known.
std::optional<std::uint64_t> pattern_digest(const ContentDigests& content);

/// Collective. Writes an order; `mine`: the clusters of even_range(nodes, comm.size(),
/// comm.rank()). UserError(kUsage) on every rank when the disk refuses.
void write_order(const Communicator& comm, const OutputFile& output, const VertexPartitionInfo& info,
                 std::span<const std::uint16_t> mine);

/// Collective. The whole order on every rank. UserError(kInput) on every rank for a file that is
/// none, or in which clusters are missing.
Order read_order(const Communicator& comm, const std::string& path);

/// What is in the clusters of a sequence, as VertexPartitionInfo says it. The arrays must stay.
struct ClusterContents {
  std::span<const ClusterWeights> weights;
  std::span<const std::int64_t> of_types;

  ClusterContents(const std::vector<ClusterWeights>& all) : weights(all) {}
  ClusterContents(std::span<const ClusterWeights> all) : weights(all) {}
  ClusterContents(const VertexPartitionInfo& order) : weights(order.weights), of_types(order.type_weights) {}

  /// Those of kBalanceNames; then, where there are several types, two of each.
  std::size_t kinds() const { return kBalances + (weights.empty() ? 0 : of_types.size() / weights.size()); }
  std::int64_t weight(std::size_t cluster, std::size_t kind) const {
    return kind < kBalances ? weights[cluster][kind]
                            : of_types[cluster * (kinds() - kBalances) + kind - kBalances];
  }
};

/// Cuts the sequence of clusters into `parts` stretches, of all cuts one whose largest excess is
/// least; the excess of a part is max over kinds of (weight / mean - 1) / slack, where slack is
/// 1 for vertices, train and the vertices of a type, 4 for the edges of a type, 2.5 for the
/// others; the mean is total / parts, of a type at least what is in the heaviest cluster. Among
/// these its cuts are near where even parts would end. Parts are empty only when there are more
/// than clusters.
RowPartition cut_order(const ClusterContents& contents, int parts);

/// Cuts it into `groups` stretches whose training vertices are as even as clusters allow.
RowPartition cut_training(std::span<const ClusterWeights> weights, int groups);

/// For each kind: the largest part over the mean part. 1 where there is nothing of a kind.
std::vector<double> balances_of(const ClusterContents& contents, const RowPartition& cuts);

/// Who owns which vertex of an order on a grid of so many block rows.
Ownership own_by(const Order& order, int parts);

}  // namespace espalier
