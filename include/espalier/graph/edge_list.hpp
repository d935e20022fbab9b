// From a list of edges to rows of the adjacency matrix: row v lists the sources of the edges into v,
// ascending, each once.
//
// Edges are placed by a counting sort on their row and each row is then sorted where it lies, in cache, so
// the peak is the edge list plus the matrix (8 + 4 bytes per edge with 32-bit ids), never sorted pairs beside
// them.
#pragma once

#include <cstdint>

#include "espalier/base/buffer.hpp"
#include "espalier/graph/row_range.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

/// Edge e goes from sources[e] to targets[e].
template <class Index>
struct EdgeList {
  Buffer<Index> sources, targets;
  Buffer<float> weights;  ///< empty: all 1
};

struct EdgeOptions {
  bool symmetrize = false;  ///< A + A^T: every edge also in the other direction
  bool drop_self_loops = false;
};

/// What became of the edges.
struct EdgeCounts {
  std::int64_t given = 0;
  std::int64_t reversed = 0;  ///< added by symmetrize
  std::int64_t loops_dropped = 0;
  std::int64_t merged = 0;  ///< entries that fell onto another with the same row and column
};

/// Rows `range` of the n x n adjacency matrix. Targets (with symmetrize: sources too) lie in `range`, sources
/// in [0, n). Entries that meet are merged: their weights are added as a sum of matrices would, without
/// weights they stay 1. Empties `edges`.
template <class Index>
Csr<Index> build_rows(EdgeList<Index>& edges, const RowRange& range, std::int64_t n,
                      const EdgeOptions& options, EdgeCounts& counts);

/// Is the pattern of a square matrix equal to that of its transpose? Rows ascending; weights are not looked
/// at.
template <class Index>
bool is_symmetric(const Csr<Index>& matrix);

}  // namespace espalier
