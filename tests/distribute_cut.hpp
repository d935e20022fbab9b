// A DistCsr that is cut, of a matrix that every rank knows.
#pragma once

#include <cstdint>
#include <span>

#include "espalier/base/row_range.hpp"
#include "espalier/product/dist_csr.hpp"

namespace espalier {

/// Entry e of `whole` lies with block row parts[e]; as deal_cut. Collective.
template <class Index>
DistCsr<Index> distribute_cut(const Grid& grid, const Csr<Index>& whole, const Ownership& ownership,
                              std::span<const std::uint16_t> parts, bool apart = false) {
  const auto& column = grid.column_comm();
  const auto mine = even_range(whole.rows, column.size(), column.rank());
  Csr<Index> rows;
  rows.rows = mine.size();
  rows.columns = whole.columns;
  rows.weighted = whole.has_values();
  const auto first = whole.row_begin(mine.begin), last = whole.row_begin(mine.end);
  for (auto row = mine.begin; row < mine.end; ++row) rows.indptr.push_back(whole.row_end(row) - first);
  rows.indices.assign(whole.indices.begin() + first, whole.indices.begin() + last);
  if (whole.has_values()) rows.values.assign(whole.values.begin() + first, whole.values.begin() + last);
  return deal_cut(grid, rows, ownership, {parts.begin() + first, parts.begin() + last}, apart);
}

}  // namespace espalier
