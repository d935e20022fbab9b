// Imports a graph that is one file of edges, plain, gzip or zstd, whatever its name:
//
//   an edge list      a line for each edge, "source target", apart by blanks, tabs or a comma, with
//                     a weight behind them where that is asked for; lines that begin with # or %
//                     are comments
//   Matrix Market     a matrix in coordinate format: entry (i, j) is an edge from j to i
//                     (matrix_market.hpp)
//
// The file is read twice, with renumbering three times, and never in memory: that is the matrix
// that is written, 4 bytes for an edge (8 with a weight) and 8 for a vertex.
//
// Vertices are 0 to the largest id, or as many as is said; renumbered they are the ids that there
// are, in ascending order, and the ids stand in the graph file. What is known of them comes as
// numpy's arrays, a row for each vertex.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "espalier/base/output_file.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/graph/edge_source.hpp"

namespace espalier {

/// Files of numpy (.npy); an empty path: there is none.
struct VertexArrays {
  std::string features;               ///< [n, f]
  std::string labels;                 ///< [n] classes, -1 or nan: none; [n, C] of 0, 1 and nan
  std::array<std::string, 3> splits;  ///< by Split: ids, those of the edges, or a mask [n]
  bool half = false;                  ///< store features as float16
};

struct EdgeFileOptions {
  std::string file;
  bool weights = false;  ///< the third field of a line; the values of a matrix, else passed over
  EdgeOptions edges;
  VertexArrays arrays;
  // Of an edge list:
  std::optional<std::int64_t> vertices = {};  ///< so many; else by the arrays, else by the
                                              ///< largest id
  bool renumber = false;
};

/// Collective. Reads and writes the graph file `output`. Throws UserError(kInput) on every
/// rank with file and line for anything that does not fit; then there is no `output`. Throws
/// UserError(kUsage) when `output` is one of the inputs, also as check_output() and put_in_place()
/// do.
void import_edge_list(const Communicator& comm, const EdgeFileOptions& options, const OutputFile& output);
/// As describe_ogb(), of an edge list without --renumber. Reads it where nothing else says how many
/// vertices there are.
std::string describe_edge_list(const Communicator& comm, const EdgeFileOptions& options);
void import_matrix_market(const Communicator& comm, const EdgeFileOptions& options, const OutputFile& output);

}  // namespace espalier
