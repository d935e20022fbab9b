// What a product of a sampler holds on a rank while it is computed, beside the matrix and what it
// is asked for (product.hpp).
#pragma once

#include "espalier/base/footprint.hpp"
#include "espalier/product/schedule.hpp"

namespace espalier {

/// Offsets, ids and values of so many rows (Entries).
Footprint entries_footprint(double rows, double entries, double id_bytes, double value_bytes);

/// Of one rank. `work.rows`, `row_entries`, `distinct`, `distinct_entries`, `results`: of all rows,
/// those of this rank among them. `selects`: results are places among selected columns, with the
/// matrix's values; else columns.
Footprint product_footprint(Schedule schedule, const ProductShape& shape, const ProductWork& work,
                            bool selects, int threads);

}  // namespace espalier
