// Whether links have a direction, in the digest of a file that has links: it changes what they say,
// and stands in an attribute.
#pragma once

#include "espalier/graph/content_digest.hpp"

namespace espalier {

/// Counts as one more data set.
inline DatasetContent direction_of_links(bool directed) {
  return {"/links", {}, directed ? std::uint64_t{1} : std::uint64_t{0}};
}

}  // namespace espalier
