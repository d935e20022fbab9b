// What the network is trained and judged on: the splits and the labels.
//
// Every rank holds the training vertices and their labels. Other labels, and the vertices to
// validate and test on, stay with the block row that owns them.
#pragma once

#include "espalier/comm/grid.hpp"
#include "espalier/graph/graph_file.hpp"
#include "espalier/partition/row_partition.hpp"

namespace espalier {

struct Targets {
  std::int64_t classes = 0;
  Buffer<std::int64_t> train;         ///< ascending ids, whole, on every rank
  Buffer<std::int32_t> train_labels;  ///< beside train
  Buffer<std::int64_t> valid, test;   ///< ascending ids, those of my block row
  RowPartition partition;
  Buffer<std::int32_t> local_labels;  ///< labels of my block row
};

/// Throws UserError(kInput) when a network cannot be trained on the labels: none, all -1, several
/// per vertex. `otherwise` ends the message: what else can be done.
void check_labels(const GraphInfo& graph, const std::string& path, const char* otherwise = "");

/// Collective over the grid. Throws UserError(kInput) when the file cannot be trained on: no single
/// labels, no training vertices, splits that overlap or name unlabelled vertices.
Targets read_targets(const Grid& grid, const GraphFile& file);

}  // namespace espalier
