// Links of a graph file: (head, relation, tail), edges that are learnt. Messages pass along the
// edges of A; links stand beside them. Where a link is an edge of A, too, it is the entry in row
// `tail`, column `head`; the reverse entry is there where links have no direction, and of a graph
// with types that of the relation's inverse.
//
// docs/graph-file.md says how they lie in it. GraphFile reads them, GraphWriter
// writes them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "espalier/base/buffer.hpp"
#include "espalier/comm/communicator.hpp"

namespace espalier {

class GraphFile;

inline constexpr std::int64_t kMostLinkRelations = 1 << 20;

/// What a file knows of the links of one split.
struct SplitLinks {
  std::int64_t links = 0;
  std::int64_t negative_heads = 0, negative_tails = 0;  ///< of each link; 0: none are given
  std::int64_t non_links = 0;                           ///< of all links

  /// Does the file give what its links are ranked among?
  bool gives_candidates() const { return negative_heads + negative_tails + non_links > 0; }
};

/// What a file knows of its links.
struct LinkInfo {
  bool exist = false;
  bool directed = true;
  std::vector<std::string> names = {};    ///< of relations; empty: one without a name
  std::vector<int> graph_relations = {};  ///< [relations], places in the schema; empty: they are
                                          ///< none of them
  std::array<SplitLinks, 3> splits = {};  ///< by Split

  std::int64_t relations() const { return std::max<std::int64_t>(1, std::ssize(names)); }
};

/// Some links of a split.
struct Links {
  Buffer<std::int64_t> heads = {}, tails = {};
  Buffer<std::int32_t> relations = {};  ///< empty: all of relation 0
};

/// What a negative replaces.
enum class LinkEnd { kHead, kTail };

/// Links that another relation of the graph says, too, or the same one the other way round.
struct LinkEcho {
  int links = -1;         ///< the relation that they are of; -1: it is none of the graph's
  int relation = 0;       ///< that has edges between their ends
  bool reversed = false;  ///< from tail to head
  std::array<std::int64_t, 3> of = {}, found = {};  ///< by Split: how many links, and found there
  double by_chance = 0;                             ///< the share of all pairs that are edges of
                                                    ///< `relation`
};

/// What tells the links of valid and test. By Split.
struct LinkLeaks {
  std::array<std::int64_t, 3> edges = {};  ///< links that are edges of A, too: of their relation,
                                           ///< its inverse (of no relation of the graph: of any)
                                           ///< and, without direction, the other way round
  std::vector<LinkEcho> echoes = {};       ///< all else between their ends
};

/// Collective. `file` is open with its relations apart; a rank holds the links with an end in its
/// even range of rows, and reads rows in parts.
LinkLeaks find_link_leaks(const Communicator& comm, const GraphFile& file);

/// An echo is told of where, of the links of a split, so much more are found than by chance.
inline constexpr double kLeakShare = 0.1;
/// Sentences that say what is told, with `remedies` what to do, too.
std::vector<std::string> leaks_in_words(const GraphFile& file, const LinkLeaks& leaks, bool remedies = true);

/// By Split.
struct LinkCounts {
  std::array<std::int64_t, 3> to_self = {};  ///< links from a vertex to itself
  std::array<std::vector<std::int64_t>, 3> of_relation = {};
};

/// Collective. Reads all links and their negatives, in parts of bounded size, and forgets them:
/// what does not fit is found, the rest is counted. A graph without links is fine.
LinkCounts check_links(const Communicator& comm, const GraphFile& file);

/// Sentences about links that people should know of: how many are of a vertex to itself; which
/// relations have some to be judged by and none to learn from.
std::vector<std::string> odd_links(const LinkInfo& info, const LinkCounts& counts);

}  // namespace espalier
