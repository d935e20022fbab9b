// What one look at a column of a graph file says of it: read whole, in parts of bounded size, by
// all ranks, so it also finds what is wrong with it. All are collective, with the same result on
// every rank.
#pragma once

#include <cstdint>
#include <vector>

#include "espalier/comm/communicator.hpp"
#include "espalier/graph/graph_file.hpp"

namespace espalier {

struct NumberFacts {
  float least, most;
  std::int64_t nonzero;
};

/// Of the features of a type's vertices, or of a relation's edges, of which there are some.
NumberFacts read_feature_facts(const Communicator& world, const GraphFile& file, int type);
NumberFacts read_edge_feature_facts(const Communicator& world, const GraphFile& file, int relation);

/// [classes + 1] how many vertices of a type have each label; behind them, of several labels per
/// vertex, how many are unknown.
std::vector<std::int64_t> count_labels(const Communicator& world, const GraphFile& file, int type);

struct TimeRange {
  std::int64_t earliest, latest;
};

/// Of a column of times, of which there are some.
TimeRange read_time_range(const Communicator& world, const GraphFile& file, Column column, int owner);

/// Vertices of a type that no edge leads to.
struct UnreachedVertices {
  std::int64_t all;
  std::int64_t train, of_train;  ///< so many of those to train on
};

/// Of each type, of a file that is read with its relations apart.
std::vector<UnreachedVertices> count_unreached(const Communicator& world, const GraphFile& file);

}  // namespace espalier
