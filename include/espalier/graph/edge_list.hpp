// From a list of edges to rows of the adjacency matrix: row v lists the sources of the edges into
// v, ascending, each once.
//
// Edges are placed by a counting sort on their row and each row is then sorted where it lies, in
// cache, so the peak is the edge list plus the matrix (8 + 4 bytes per edge with 32-bit ids), never
// sorted pairs beside them.
//
// Duplicates. Without symmetrize, two given edges are duplicates when they have the same source and
// the same target. With symmetrize every given edge stands for both of its directions, so (u,v) and
// (v,u) are duplicates too: entries (v,u) and (u,v) of the matrix come out of all edges given
// between u and v, and are equal. A self loop that is given once is its own reverse: as in A + A^T
// its weight counts twice in a sum, but it is no duplicate.
#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>

#include "espalier/base/buffer.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/base/row_range.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

/// Edge e goes from sources[e] to targets[e].
template <class Index>
struct EdgeList {
  Buffer<Index> sources, targets;
};

/// What an entry is when several edges make it.
enum class Duplicates {
  kSum,     ///< the sum of their weights, in double precision, in the order of the list
  kMean,    ///< that sum divided by how many they are
  kMax,     ///< the largest weight
  kFirst,   ///< the weight of the first in the list
  kLast,    ///< of the last
  kCount,   ///< how many they are: the sum where every edge weighs 1, whatever its weight
  kRefuse,  ///< an error
};

/// What the features of an entry are when several edges make it. Features of an edge that
/// symmetrize turned round are its own; a self loop is one edge here, not two.
enum class DuplicateFeatures {
  kKept,   ///< those of the edge whose weight stays: kMax, kLast; else of the first
  kFirst,  ///< of the first in the list
  kLast,   ///< of the last
  kSum,    ///< the sum of each, in double precision, in the order of the list
  kMean,   ///< that sum divided by how many they are
};

/// What users call them, in the order of the enums.
inline constexpr std::array kDuplicateNames = {"sum", "mean", "max", "first", "last", "count", "refuse"};
inline constexpr std::array kDuplicateFeatureNames = {"kept", "first", "last", "sum", "mean"};

struct EdgeOptions {
  bool symmetrize = false;  ///< A + A^T: every edge also in the other direction
  bool drop_self_loops = false;
  Duplicates duplicates = Duplicates::kSum;  ///< without weights entries stay 1, but of kCount
  DuplicateFeatures features = DuplicateFeatures::kKept;
  bool latest = false;  ///< of the times of edges in one direction: the latest, not the earliest

  bool adds_features() const {
    return features == DuplicateFeatures::kSum || features == DuplicateFeatures::kMean;
  }
};

/// What became of the edges.
struct EdgeCounts {
  std::int64_t given = 0;
  std::int64_t reversed = 0;  ///< added by symmetrize
  std::int64_t loops_dropped = 0;
  std::int64_t vanished = 0;  ///< weights that float32 holds as 0
  std::int64_t merged = 0;    ///< entries that fell onto another with the same row and column
  // Why they fell there. Of a whole matrix: merged = repeated without symmetrize, with it 2
  // repeated + mirrored + loops.
  std::int64_t repeated = 0;  ///< given edges with the source and the target of an earlier one
  std::int64_t places = 0;    ///< given edges that were so repeated
  std::int64_t mirrored = 0;  ///< symmetrize: entries off the diagonal whose reverse is given as
                              ///< well (two a pair)
  std::int64_t alike = 0;     ///< of those, first given with the weight of the reverse; without
                              ///< weights all
  std::int64_t loops = 0;     ///< symmetrize: distinct self loops, which meet their own reverse
};

/// The first edge of a list that repeats an earlier one.
struct RepeatedEdge {
  std::int64_t edge = 0, earlier = 0;  ///< places in the list
  std::int64_t source = 0, target = 0;
  bool reversed = false;  ///< the earlier one goes from target to source (symmetrize)
};

/// Edges with duplicates that were to be refused.
class DuplicateEdge : public std::runtime_error {
 public:
  explicit DuplicateEdge(const RepeatedEdge& found)
      : std::runtime_error("an edge is repeated"), found_(found) {}
  const RepeatedEdge& found() const { return found_; }

 private:
  RepeatedEdge found_;
};

/// Rows `range` of the n x n adjacency matrix. Targets (with symmetrize: sources too) lie in
/// `range`, sources in [0, n). Entries have no weights, and those that meet become one; of the
/// options only symmetrize and drop_self_loops count. Ids lie below the largest Index. Empties
/// `edges`.
template <class Index>
Csr<Index> build_rows(EdgeList<Index>& edges, const RowRange& range, std::int64_t n,
                      const EdgeOptions& options, EdgeCounts& counts);

/// A sum over edges, modulo 2^64: over all rows of a graph it is 0 where reversing all of them
/// changes nothing. `rows` are those from `first` on.
template <class Index>
std::uint64_t asymmetry_of(const Csr<Index>& rows, std::int64_t first) {
  std::uint64_t difference = 0;
  for (std::int64_t v = first; v < first + rows.rows; ++v)
    for (const std::int64_t u : rows.row_indices(v - first))
      difference += absorb(absorb(0, v), u) - absorb(absorb(0, u), v);
  return difference;
}

}  // namespace espalier
