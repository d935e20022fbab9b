// What ranks find together of a whole graph file. How many vertices have how many entries in their
// row, read from where rows begin, is what estimates go by; then facts of edges and of columns.
#pragma once

#include <cstdint>
#include <vector>

#include "espalier/base/row_range.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/graph/graph_file.hpp"

namespace espalier {

/// So many vertices have this degree.
struct DegreeCount {
  std::int64_t degree = 0, vertices = 0;
};

/// Ascending, each degree once.
using DegreeHistogram = std::vector<DegreeCount>;

/// Collective. The same on every rank, and on any number of ranks. `more`: entries that each row
/// gets beside those of the file, as self loops.
DegreeHistogram read_degrees(const Communicator& comm, const GraphFile& file, std::int64_t more = 0);

/// The smallest degree that at least a fraction q of the n vertices does not exceed.
std::int64_t quantile(const DegreeHistogram& degrees, double q, std::int64_t n);

// What one look at all edges of a graph file says of them.

/// Of each relation; a graph without types has one.
struct EdgeFacts {
  std::vector<std::int64_t> entries, most;       ///< the largest in-degree
  std::vector<std::uint64_t> forward, backward;  ///< sums over edges, and over reversed edges:
                                                 ///< equal where the sets of edges are
  std::int64_t self_loops = 0;                   ///< of all
  std::int64_t isolated = 0;                     ///< vertices without an edge in either direction
};

/// Collective. Of a file that is read with its relations apart.
EdgeFacts read_edge_facts(const Communicator& world, const GraphFile& file, const char* label);

// What one look at a column of a graph file says of it: read whole, in parts of bounded size, by
// all ranks, so it also finds what is wrong with it. All are collective, with the same result on
// every rank.

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
