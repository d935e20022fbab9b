// Random sparse matrices for tests, with the awkward rows that real graphs have.
#pragma once

#include <algorithm>
#include <vector>

#include "espalier/base/philox.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

/// n x n; row 0 has every column (degree n, its own self-loop too), row 1 none, row 2 a self-loop
/// only; others up to 2 * degree random distinct columns. With `weighted`, values are k/8 for k = 0
/// .. 31 (so some are zero).
template <class Index>
Csr<Index> random_graph(std::int64_t n, std::int64_t degree, bool weighted, std::uint64_t seed) {
  Csr<Index> a;
  a.rows = a.columns = n;
  a.weighted = weighted;
  for (std::int64_t v = 0; v < n; ++v) {
    const RandomStream stream = {.seed = seed, .row = static_cast<std::uint64_t>(v)};
    std::vector<Index> columns;
    const auto size =
        v == 1 || v == 2
            ? 0
            : static_cast<std::int64_t>(random_below(stream, 0, static_cast<std::uint64_t>(2 * degree + 1)));
    for (std::int64_t k = 0; k < size; ++k)
      columns.push_back(static_cast<Index>(
          random_below(stream, static_cast<std::uint64_t>(k + 1), static_cast<std::uint64_t>(n))));
    if (v == 0)
      for (std::int64_t u = 0; u < n; ++u) columns.push_back(static_cast<Index>(u));
    if (v == 2) columns.push_back(2);
    std::sort(columns.begin(), columns.end());
    columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
    for (std::size_t k = 0; k < columns.size(); ++k) {
      a.indices.push_back(columns[k]);
      if (weighted) a.values.push_back(static_cast<float>(random_below(stream, 1000 + k, 32)) / 8.0f);
    }
    a.indptr.push_back(static_cast<std::int64_t>(a.indices.size()));
  }
  return a;
}

}  // namespace espalier
