// The edges of a graph without types, from the file that an import reads to the graph file.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "espalier/graph/edge_source.hpp"
#include "espalier/graph/graph_writer.hpp"
#include "feature_rows.hpp"

namespace espalier {

/// What became of the edges that are imported, in words.
struct EdgeReport {
  EdgeOptions options;
  bool weighted = false, featured = false;
  std::string line = "line";          ///< what an edge is in its file
  std::string one_direction_by = {};  ///< who says that only one direction of each edge is listed
};

/// Prints what met, and what came of it: a warning with the default, which nobody may have asked
/// for. `to_keep`: what keeps how often an edge is listed.
void report_repeated(const std::string& met, const EdgeReport& of, const std::string& to_keep);

/// Prints what was read of a graph without types, what met in one entry, and which entries have no
/// reverse.
void report_edges(const EdgeReport& of, const EdgeCounts& counts, std::int64_t entries, std::int64_t one_way,
                  double seconds);

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
