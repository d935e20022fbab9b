// The edges of a graph without types, from the file that an import reads to the graph file.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "edge_report.hpp"
#include "espalier/graph/edge_source.hpp"
#include "espalier/graph/graph_writer.hpp"
#include "feature_rows.hpp"

namespace espalier {

/// What rank 0 has; the other ranks nothing.
struct GivenEdges {
  const EdgeSource* edges = nullptr;
  std::int64_t nodes = -1;  ///< -1: as many as the largest id says
  EdgeReport report = {};   ///< with the options; whether there are weights or features is found
  /// Features of so many edges, null where they have none; may be empty.
  std::function<std::unique_ptr<FeatureRows>(std::int64_t edges)> open_features = {};
  bool half = false;  ///< as float16, too, where they are not
};

/// What is in the graph file.
struct ImportedEdges {
  std::int64_t nodes = 0;
  std::int64_t alone = 0;  ///< vertices without an edge
  bool directed = false;
};

/// Collective. Reads the edges twice and writes the adjacency matrix, with features of edges where
/// there are any; the result is that of every rank. Memory on rank 0 is that of the matrix.
ImportedEdges import_edges(const Communicator& comm, const GivenEdges& given, GraphWriter& writer);

}  // namespace espalier
