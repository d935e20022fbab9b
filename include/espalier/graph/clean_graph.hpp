// How rewrite_graph() makes a raw graph file fit and puts its vertices into another order, in these
// steps:
//
//   1. Loops are left out.
//   2. Repeated edges become one. Columns of the file may be in any order then, and repeated.
//   3. Every edge gets its reverse. Where both are there nothing is added, and each keeps its own
//      weight, features and time; a reverse that is added gets those of the edge. With types this
//      is done in relations that join a type to itself; one with an inverse has its reverses there.
//   4. The largest component, whichever way edges point, of as large ones that with the least
//      vertex, stays; the others' vertices go.
//   5. Vertices are numbered anew; in each order those that are alike stay as they were. A file
//      without ids of the user's gets the old numbers as ids, here and in step 4, so that they
//      speak of the same vertices.
//
// Everything that is counted by vertices follows: features, labels, splits, ids, links. All is the
// same for any number of ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "espalier/graph/edge_list.hpp"

namespace espalier {

enum class RowOrder {
  kFile,           ///< as they are
  kDegree,         ///< most entries in the row first
  kCluster,        ///< by cluster of an order (partition/order.hpp)
  kClusterDegree,  ///< by cluster, most entries first in each
  kRandom,         ///< by a draw for each vertex
  kComponent,      ///< by component: the largest first, of as large ones that with the least vertex
};

struct CleanOptions {
  bool drop_loops = false, drop_duplicates = false, symmetrise = false, largest_component = false;
  /// What repeated edges leave behind: kFirst, kLast, kSum, kMean also of their features; kCount,
  /// with the features of the first.
  Duplicates repeats = Duplicates::kFirst;
  bool latest_times = false;  ///< of repeated edges, else the earliest
  RowOrder order = RowOrder::kFile;
  std::uint64_t seed = 0;                        ///< of kRandom
  std::span<const std::uint16_t> clusters = {};  ///< [nodes] of all vertices, where an order
                                                 ///< is asked for
  std::string words = {};                        ///< what was asked for; becomes part of the
                                                 ///< file's source

  /// Of what the builder makes of the file's rows.
  EdgeOptions of_rows() const {
    using enum DuplicateFeatures;
    return {.drop_self_loops = drop_loops,
            .duplicates = repeats,
            .features = repeats == Duplicates::kSum    ? kSum
                        : repeats == Duplicates::kMean ? kMean
                                                       : kKept};
  }
  bool renumbers() const { return largest_component || order != RowOrder::kFile; }
};

/// What became of it, on all ranks.
struct CleanCounts {
  std::int64_t loops = 0;       ///< left out
  std::int64_t repeated = 0;    ///< edges that repeat an earlier one
  std::int64_t places = 0;      ///< edges that were there several times
  std::int64_t reversed = 0;    ///< reverses that were added
  std::int64_t components = 0;  ///< of the graph after steps 1 to 3; 0: nobody asked
  std::int64_t nodes = 0;       ///< that are left
  bool gives_ids = false;       ///< the file has got the old numbers as ids
};

}  // namespace espalier
