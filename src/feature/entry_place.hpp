// Where an entry of a matrix stands among those that have rows in a store.
#pragma once

#include <cstdint>

#include "espalier/base/host_device.hpp"

namespace espalier {

/// The place of (row, column) among all entries of the matrix; behind them where it is not one.
template <class Index>
ESPALIER_HD inline std::int64_t entry_place(const std::int64_t* indptr, const Index* indices,
                                            std::int64_t rows, std::int64_t row, std::int64_t column) {
  std::int64_t low = indptr[row];
  const std::int64_t end = indptr[row + 1];
  for (std::int64_t high = end; low < high;) {
    const std::int64_t middle = low + (high - low) / 2;
    if (static_cast<std::int64_t>(indices[middle]) < column)
      low = middle + 1;
    else
      high = middle;
  }
  return low < end && static_cast<std::int64_t>(indices[low]) == column ? low : indptr[rows];
}

}  // namespace espalier
