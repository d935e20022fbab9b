// What a task reads of a graph file before training: the splits, and what its vertices should
// become.
//
// Every rank holds the training vertices and what is to be learnt of them. What is known of others,
// and the vertices to validate and test on, stay with the block row that owns them.
#pragma once

#include <memory>
#include <string>

#include "espalier/comm/grid.hpp"
#include "espalier/graph/graph_file.hpp"
#include "espalier/graph/row_range.hpp"

namespace espalier {

/// What all tasks have in common; each adds its own (classes.hpp).
struct Targets {
  Targets() = default;
  Targets(const Targets&) = default;
  Targets& operator=(const Targets&) = default;
  virtual ~Targets() = default;

  std::int64_t outputs = 0;          ///< columns of the logits
  Buffer<std::int64_t> train;        ///< ascending ids, whole, on every rank
  Buffer<std::int64_t> valid, test;  ///< ascending ids, those of my block row
  RowRange block;                    ///< the vertices of my block row
  RowRange judged;                   ///< those of them that this rank judges: each vertex
                                     ///< has one rank
};

/// Fills in block and judged, for a graph of so many vertices.
void place_targets(const Grid& grid, std::int64_t nodes, Targets& targets);

/// The part of an ascending list that lies in `range`.
Buffer<std::int64_t> part_of(const Buffer<std::int64_t>& ids, const RowRange& range);

/// Collective over the grid. The splits and who judges what. Throws UserError(kInput) when there
/// are no training vertices, or splits overlap or name unlabelled vertices.
void read_splits(const Grid& grid, const GraphFile& file, Targets& targets);

/// Collective over the grid. What the task of that name trains and judges by. Throws
/// UserError(kInput) when the file cannot be trained on: also as check_labels does.
std::unique_ptr<Targets> read_targets(const Grid& grid, const GraphFile& file, const std::string& task);

/// Throws UserError(kInput) when the task of that name cannot be learnt from the labels: none, all
/// -1, several per vertex where it wants one. `otherwise` ends the message: what else can be done.
void check_labels(const GraphInfo& graph, const std::string& path, const std::string& task,
                  const char* otherwise = "");

}  // namespace espalier
