// Rows as they stand in a raw file, whose columns are in any order and repeated, as edges
// that the builder takes (row_building.hpp): edge e is entry e of this rank's rows, in the
// order of the file.
#pragma once

#include <cstdint>

#include "espalier/graph/schema.hpp"
#include "espalier/sparse/csr.hpp"
#include "row_building.hpp"

namespace espalier {

template <class Index>
struct RawRows {
  const Schema& schema;
  RowRange range;
  const Csr<Index>& rows;
};

template <class Index, class Visit>
void for_each_entry(const RawRows<Index>& raw, const EdgeOptions& options, Visit visit) {
  const auto& rows = raw.rows;
  const bool weighted = rows.has_values() && options.duplicates != Duplicates::kCount;
  for (std::int64_t row = 0; row < rows.rows; ++row)
    for (auto e = rows.row_begin(row); e < rows.row_end(row); ++e) {
      const auto v = raw.range.begin + row;
      if (options.drop_self_loops && raw.schema.vertex_of(rows.indices[e]) == v) continue;
      visit(v, rows.indices[e], weighted ? rows.values[e] : 1, e, false);
    }
}

}  // namespace espalier
