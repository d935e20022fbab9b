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
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "espalier/graph/graph_file.hpp"

namespace espalier {

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

}  // namespace espalier
