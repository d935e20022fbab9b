// Features, labels and splits of vertices, from what an import reads to the graph file; of one
// type, where there are types.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

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

/// Collective. Writes the three parts of a split that rank 0 has, under its name, if it has one.
void import_splits(const Splits& splits, GraphWriter& writer, int type = 0, const std::string& name = "");

}  // namespace espalier
