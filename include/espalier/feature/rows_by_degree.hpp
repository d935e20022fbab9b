// Vertices in the order of their degrees, for a cache of feature rows in the first epoch.
#pragma once

#include <cstdint>
#include <vector>

#include "espalier/product/dist_csr.hpp"

namespace espalier {

/// Collective over the process column of a's grid. Of each part the `most` vertices whose rows of
/// `a` have most entries, all of them together: the most entries first, of as many by id.
template <class Index>
std::vector<std::int64_t> rows_by_degree(const DistCsr<Index>& a, std::int64_t most);

}  // namespace espalier
