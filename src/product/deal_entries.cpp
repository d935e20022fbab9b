#include "entry_deal.hpp"

namespace espalier {

template <class Index>
DistCsr<Index> deal_cut(const Grid& grid, const Csr<Index>& mine, const Ownership& ownership,
                        Buffer<std::uint16_t> parts, bool apart) {
  const auto& column = grid.column_comm();
  EntryDeal<Index> deal(grid, ownership, mine.columns, mine.has_values(), apart);
  deal.add(even_range(ownership.rows(), column.size(), column.rank()).begin, mine, std::move(parts));
  return deal.finish();
}

template <class Index>
DistCsr<Index> distribute_cut(const Grid& grid, const Csr<Index>& whole, const Ownership& ownership,
                              std::span<const std::uint16_t> parts, bool apart) {
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

#define ESPALIER_INSTANTIATE(Index)                                                                         \
  template DistCsr<Index> deal_cut(const Grid&, const Csr<Index>&, const Ownership&, Buffer<std::uint16_t>, \
                                   bool);                                                                   \
  template DistCsr<Index> distribute_cut(const Grid&, const Csr<Index>&, const Ownership&,                  \
                                         std::span<const std::uint16_t>, bool);
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
