// One row of the product of a sparse matrix and a column selection: the entries of a row that meet a list of
// columns.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "espalier/sparse/csr.hpp"

namespace espalier {

/// Calls meet(c, k) for every pair with row.indices[k] == columns[c], c ascending. Both lists ascend and hold
/// no id twice. A list far longer than the other is searched instead of walked: O(min(r + c, c log r, r log
/// c)) steps for lists of r and c ids.
template <class Index, class Meet>
void for_each_common(const RowView<Index>& row, std::span<const Index> columns, Meet meet) {
  constexpr std::int64_t kSearchIfLonger = 16;
  const auto count = std::ssize(columns);
  if (row.size > kSearchIfLonger * count) {
    const Index* from = row.indices;
    const Index* const end = row.indices + row.size;
    for (std::int64_t c = 0; c < count; ++c) {
      from = std::lower_bound(from, end, columns[static_cast<std::size_t>(c)]);
      if (from == end) return;
      if (*from == columns[static_cast<std::size_t>(c)]) meet(c, from - row.indices);
    }
  } else if (count > kSearchIfLonger * row.size) {
    auto from = columns.begin();
    for (std::int64_t k = 0; k < row.size; ++k) {
      from = std::lower_bound(from, columns.end(), row.indices[k]);
      if (from == columns.end()) return;
      if (*from == row.indices[k]) meet(from - columns.begin(), k);
    }
  } else {
    std::int64_t c = 0, k = 0;
    while (c < count && k < row.size) {
      const Index wanted = columns[static_cast<std::size_t>(c)], there = row.indices[k];
      if (wanted == there) meet(c, k);
      c += wanted <= there;
      k += there <= wanted;
    }
  }
}

}  // namespace espalier
