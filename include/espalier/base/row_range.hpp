// Even row ranges: how n rows are cut for reading, writing and generating, when nothing better is
// known. Part r of p holds rows [n r / p, n (r+1) / p), so sizes differ by at most one and the
// owner of a row is one division.
#pragma once

#include <cstdint>

namespace espalier {

struct RowRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
};

/// Part `part` of `parts` of the rows [0, n); empty where there are more parts than rows. n *
/// parts < 2^63.
inline RowRange even_range(std::int64_t n, std::int64_t parts, std::int64_t part) {
  return {n * part / parts, n * (part + 1) / parts};
}

/// The part that holds `row`: the largest r with n r / p <= row.
inline std::int64_t even_owner(std::int64_t n, std::int64_t parts, std::int64_t row) {
  return ((row + 1) * parts - 1) / n;
}

}  // namespace espalier
