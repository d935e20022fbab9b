// From what an import reads to the graph file: features, labels and splits of vertices, of one type
// where there are types, and features of edges.
//
// Those of edges stand in the order of the edges' file and go into the graph file in the order of
// the matrix. Rank 0 keeps those of one relation while it picks the rows of its entries from them,
// and then of its inverse's; which these are it asks the ranks that have the entries, for one piece
// at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "espalier/comm/communicator.hpp"
#include "espalier/graph/graph_writer.hpp"
#include "feature_rows.hpp"
#include "labelled_splits.hpp"

namespace espalier {

/// Collective. Writes the features that rank 0 has, null where there are none, of so many vertices,
/// in pieces; returns the number of columns. `half`: as float16 also what is not.
std::int64_t import_features(const Communicator& comm, std::unique_ptr<FeatureRows> rows, std::int64_t count,
                             bool half, GraphWriter& writer, int type = 0);

/// Collective. Writes the labels that rank 0 has, where there are any.
void import_labels(const Communicator& comm, const OgbLabels& labels, GraphWriter& writer, int type = 0);

/// What rank 0 knows of the features of one relation's edges; the other ranks nothing.
struct GivenFeatures {
  std::unique_ptr<FeatureRows> rows;  ///< null: there are none
  std::int64_t edges = 0;             ///< so many rows there are
  /// Where features are added up: of each edge the first that it met (-1: it is left out). Else
  /// empty.
  Buffer<std::int64_t> standing = {};
  bool mean = false;  ///< and then divided by how many they are
};

/// A relation of the file that the features become those of.
struct EntriesOfEdges {
  int relation = 0;
  std::function<std::int64_t(std::int64_t)> edge_of;  ///< rank 0: the edge that an origin says
  std::function<Buffer<std::int64_t>()> origins;      ///< of each entry of this rank's rows
};

/// Collective. As import_features(), those of edges, of each relation in `into`.
std::int64_t import_edge_features(const Communicator& comm, GivenFeatures from, bool half,
                                  const std::vector<EntriesOfEdges>& into, GraphWriter& writer);

}  // namespace espalier
