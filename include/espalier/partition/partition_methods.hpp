// The ways to make an order (partition/order.hpp): each has a line in the table of
// src/partition/partition_methods.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "espalier/base/buffer.hpp"
#include "espalier/base/row_range.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/partition/edge_parts_file.hpp"
#include "espalier/partition/order.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

/// What a method is given. Every rank has an even range of the vertices.
struct VertexPartitionTask {
  const Communicator& world;
  std::int64_t nodes;
  std::int64_t edges;  ///< entries of all rows
  int clusters;        ///< 1 <= clusters <= nodes, kMostClusters
  std::uint64_t seed = 0;
  bool fast = false;  ///< fewer attempts, more edges cut
  /// Of rows that `streaming` has in memory at once, about; more find better clusters.
  std::int64_t entries_per_buffer = std::int64_t{1} << 24;
  std::vector<ClusterWeights> weights;       ///< [mine] 1, a vertex's entries, is it in each split
  std::vector<std::int64_t> type_ends = {};  ///< of each type's vertices; empty: one type
  /// Collective; every rank its own range, perhaps empty. The graph's rows [begin, end), columns
  /// ascending.
  std::function<Csr<std::int64_t>(std::int64_t begin, std::int64_t end)> read_rows;

  /// Of `cut`: the parts, folded to as many as clusters, and GraphFile::read_row_sizes.
  std::optional<EdgeCut> by = {};
  std::function<Buffer<std::int64_t>(std::int64_t begin, std::int64_t end)> read_row_sizes = {};

  RowRange mine() const { return even_range(nodes, world.size(), world.rank()); }
};

struct VertexPartitionMethod {
  const char* name;
  const char* about;  ///< a line for `espalier help partition`
  /// Collective. The cluster of each of my vertices, numbered without a gap, the same for any
  /// number of ranks; multilevel may find fewer than were asked for. UserError on every rank as
  /// check() throws it, or when memory is short (kMemory).
  Buffer<std::uint16_t> (*clusters)(const VertexPartitionTask& task);
  /// Is the method there (else UserError(kUsage)), and can it number the graph (else kInput)?
  /// `entries`: of all rows. Null: always.
  void (*check)(std::int64_t nodes, std::int64_t entries) = nullptr;
  bool uses_seed = false, uses_fast = false;
  bool balances_types = false;  ///< looks at VertexPartitionTask::type_ends
  bool by_cut = false;          ///< takes VertexPartitionTask::by
};

std::span<const VertexPartitionMethod> partition_methods();

/// The method of that name; UserError(kUsage), with all names, when there is none.
const VertexPartitionMethod& partition_method(const std::string& name);

/// What is taken when nobody asks for a method: metis where it is there and can hold the graph,
/// else our own. `entries`: of the symmetric pattern, at most.
std::string default_order_method(std::int64_t nodes, std::int64_t entries);

/// Was METIS there when the program was built?
bool has_metis();
/// Can METIS's ids number a symmetric graph of so many vertices and entries?
bool fits_metis(std::int64_t nodes, std::int64_t entries);

/// Collective. What is in each cluster that there is; `mine`: the clusters of my vertices.
std::vector<ClusterWeights> weights_of_clusters(const VertexPartitionTask& task,
                                                std::span<const std::uint16_t> mine);
/// Collective. The vertices and entries of each type in so many clusters, [clusters, 2 types].
std::vector<std::int64_t> type_weights_of_clusters(const VertexPartitionTask& task,
                                                   std::span<const std::uint16_t> mine, int clusters);

}  // namespace espalier
