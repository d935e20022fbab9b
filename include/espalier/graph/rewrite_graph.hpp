// A graph file written anew: made fit and in another order (CleanOptions), with links chosen
// among its edges (LinkSplitOptions), or both, in that order: links are of the edges that
// cleaning leaves.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "espalier/comm/communicator.hpp"
#include "espalier/file/destination.hpp"
#include "espalier/graph/edge_list.hpp"
#include "espalier/graph/graph_file.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

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

// How rewrite_graph() chooses links among the edges of a graph and gives each to train, valid or
// test: the new file has them, and no edge of those in valid and test.
//
// Which edges. Of a graph without types whose every edge has its reverse (looked for, edge by edge)
// each pair is a link once, without direction; of another graph each edge is. Of a graph with types
// each edge of the relations asked for is a link of its relation. A self loop is none, and stays.
//
// Which split. The word of an edge is
//
//     w = 63 bits drawn for (seed, relation, head, tail)
//
// with the two ends in ascending order where every edge of the relation has its reverse, so that
// both get the same. Of the e links of a relation (of pairs, there) those with the floor(e test)
// smallest words are in test, the next floor(e valid) in valid, the others in train. So a relation
// has links to train on, and everything is the same for any number of ranks.
//
// By time (`by_time`) the latest links of a relation are in test, those before in valid. The time
// of a link is the latest of the entries that stand for it: its own, its reverse where every edge
// of the relation has one, those of the inverse relation where these have times. What was at one
// moment is in one split: a border within a moment goes to the nearer end of it (to the one with
// fewer links to train on where both are as near). So the numbers of vertices do not matter, and
// of a relation, with its inverse, no entry but self loops stays that is as late as what is in
// test or valid.
//
// A pair is written from one of its ends to the other, as a bit beside its word says: both are
// replaced where negatives stand for tails alone.
//
// Which edges stay. A leaves out, for a link of valid or test, the edge, the edge of the relation's
// inverse and, with words for pairs, the reverse. All else is copied: where not every edge has its
// reverse this is another edge, whose link may be in another split. Of the relations of `also`, and
// their inverses, A leaves out what is between the ends of a link of valid or test, in either
// direction. Inverses that are declared (`inverses`) are inverses in the new file, too.

using LinkShares = std::array<double, 3>;  ///< by Split

struct LinkSplitOptions {
  LinkShares shares = {};
  std::uint64_t seed = 0;
  bool by_time = false;                     ///< not drawn
  std::vector<std::string> relations = {};  ///< by name; empty: of two that are inverses the first,
                                            ///< and those without an inverse, that have edges
  std::vector<std::string> inverses = {};   ///< "buys=bought_by": the same edges, reversed
  std::vector<std::string> also = {};       ///< relations, whose edges are no links
  std::string words = {};                   ///< what was asked for; becomes part of the
                                            ///< file's source
};

/// What became of the edges.
struct LinkSplitCounts {
  std::array<std::int64_t, 3> links = {};  ///< by Split
  bool pairs = false;                      ///< each link stands for two edges of A
  std::int64_t loops = 0;                  ///< self loops of the relations, which stay
  std::int64_t directed = 0;  ///< links of relations of a type to itself, in which not every edge
                              ///< has its reverse
  std::int64_t reversed = 0;  ///< of these the ones that have it
  std::int64_t beside = 0;    ///< edges of `also` that were left out
  std::int64_t edges_before = 0, edges = 0;
};

/// Throws UserError(kUsage) for shares that are negative, do not sum to 1, or leave none for train.
/// One of 0 is of a split that is not written.
void check_shares(const LinkShares& shares);

// The connected components of a graph, whichever way its edges point.
//
// FastSV (Zhang, Azad, Hu: FastSV, a distributed-memory connected component algorithm with fast
// convergence, PP 2020), with the minimum as it is there: every vertex has a parent f, and in each
// round, with g = f[f] and m[v] = the least g of v's neighbours,
//
//     f[f[v]] = min(f[f[v]], m[v])        a tree hooks onto another
//     f[v]    = min(f[v], m[v], g[v])     and becomes flatter
//
// until no g changes; a logarithm of rounds in practice. Then f[v] is the least vertex of v's
// component. Parents only get less and all of a round is computed from those before it, so nothing
// depends on the number of ranks.

/// Collective. Of each row of this rank's even range the least vertex of its component. `rows`: of
/// the square adjacency matrix. Memory in proportion to the rank's rows and entries.
template <class Index>
Buffer<std::int64_t> connected_components(const Communicator& comm, const Csr<Index>& rows);

/// One of them, or both.
struct RewriteOptions {
  std::optional<CleanOptions> clean = {};
  std::optional<LinkSplitOptions> links = {};  ///< shares that have passed check_shares()
};

struct RewriteCounts {
  CleanCounts clean;
  LinkSplitCounts links;
};

/// Collective. `file` is open with its relations apart and, to drop duplicates, with repeats. A
/// rank holds its even range of the rows of A (cleaned: some 25 bytes for each entry, 60 where some
/// get reverses or other places; a word for each link), and its even range of one table of
/// features. Throws UserError on every rank: kUsage for what this graph has no meaning or no effect
/// for, for relations that it has not, two that are each other's inverse, inverses with other
/// edges, a split that would be empty, an `also` that can take nothing out; kInput for sums that
/// are no finite numbers, links that cannot follow, or, where some are chosen, are there already, a
/// relation without edges, with an inverse of other edges, or, by time, without times. Then there
/// is no `output`.
RewriteCounts rewrite_graph(const Communicator& comm, const GraphFile& file, const RewriteOptions& options,
                            const Destination& output);

}  // namespace espalier
