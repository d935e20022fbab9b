// The ways to make an order (partition/order.hpp): each has a line in the table of
// src/partition/partition_methods.cpp; an order made by one of them; how good the parts are.
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
#include "espalier/graph/graph_file.hpp"
#include "espalier/partition/edge_parts.hpp"
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

// The methods, for the table in partition_methods.cpp. As VertexPartitionMethod::clusters says.

Buffer<std::uint16_t> partition_by_metis(const VertexPartitionTask& task);
void check_metis(std::int64_t nodes, std::int64_t entries);
Buffer<std::uint16_t> partition_by_multilevel(const VertexPartitionTask& task);
Buffer<std::uint16_t> partition_by_streaming(const VertexPartitionTask& task);
Buffer<std::uint16_t> partition_by_cut(const VertexPartitionTask& task);

// An order of the graph in a file: what a method is given of it, and what is said of the order then
// (partition/order.hpp).

struct OrderOptions {
  const VertexPartitionMethod* method;
  int clusters = 0;  ///< at most as many as vertices; of a method by_cut: as parts; 0: the usual
                     ///< number, or as many as parts
  std::uint64_t seed = 0;
  bool fast = false;
  bool ignore_types = false;  ///< parts are even in all vertices, not in those of each type
  std::string by = {};        ///< of a method by_cut: the file of parts of edges
};

/// Collective. What the method is given. `file` must outlive it. Throws UserError(kInput, kUsage)
/// where `by` is none, of another graph, or of fewer parts.
VertexPartitionTask order_task(const Communicator& world, const GraphFile& file, const OrderOptions& options);

/// Collective. What is to be said of the order with these clusters of my vertices.
VertexPartitionInfo describe_order(const GraphFile& file, const VertexPartitionMethod& method,
                                   const VertexPartitionTask& task, std::span<const std::uint16_t> mine);

/// Collective. The order, whole on every rank; nothing is written.
Order make_order(const Communicator& world, const GraphFile& file, const OrderOptions& options);

/// Throws UserError(kInput) when an order, or parts of edges, are of another graph, as far as that
/// is known: before the edges were read by digests that stand in the file.
void check_order(const VertexPartitionInfo& order, const GraphFile& file, const std::string& path);
void check_cut(const EdgePartsInfo& cut, const GraphFile& file, const std::string& path);

// How good an order is for a graph, cut into so many parts.

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
