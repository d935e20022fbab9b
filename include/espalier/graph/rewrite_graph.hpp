// A graph file written anew: made fit and in another order (clean_graph.hpp), with links chosen
// among its edges (split_links.hpp), or both, in that order: links are of the edges that
// cleaning leaves.
#pragma once

#include <optional>

#include "espalier/file/destination.hpp"
#include "espalier/graph/clean_graph.hpp"
#include "espalier/graph/split_links.hpp"

namespace espalier {

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
