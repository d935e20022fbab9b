// An order of the graph in a file: what a method is given of it, and what is said of the order then
// (partition/order.hpp).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "espalier/graph/graph_file.hpp"
#include "espalier/partition/order.hpp"
#include "espalier/partition/partition_methods.hpp"

namespace espalier {

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

}  // namespace espalier
