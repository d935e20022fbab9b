// A random graph of several types for tests.
#pragma once

#include <algorithm>

#include "distribute_cut.hpp"
#include "espalier/graph/schema.hpp"
#include "espalier/product/dist_csr.hpp"
#include "random_graph.hpp"

namespace espalier {

/// Types of unequal sizes; relations within and between them, two of them between the same types,
/// one without an edge.
inline Schema typed_schema(std::int64_t n) {
  const auto a = n / 2, b = a + n / 3;
  return {{{"paper", 0, a}, {"author", a, b}, {"field", b, n}},
          {{"cites", 0, 0, 4},
           {"writes", 1, 0, -1},
           {"reviews", 1, 0, -1},
           {"about", 0, 2, -1},
           {"cited_by", 0, 0, 0},
           {"follows", 1, 1, -1},
           {"unused", 2, 0, -1}}};
}

/// n x schema.columns(): the entries of relation r are a random_graph's that lie between its types.
/// Row 0 has every column that its type can have, but for those of the relation without an edge.
template <class Index>
Csr<Index> typed_graph(const Schema& schema, std::int64_t degree, bool weighted, std::uint64_t seed) {
  const auto n = schema.nodes();
  std::vector<Csr<std::int64_t>> of_relation;
  for (std::size_t r = 0; r < schema.relations().size(); ++r)
    of_relation.push_back(random_graph<std::int64_t>(n, degree, weighted, seed + 17 * r));
  Csr<Index> a;
  a.rows = n;
  a.columns = schema.columns();
  a.weighted = weighted;
  for (std::int64_t v = 0; v < n; ++v) {
    for (int r = 0; r < std::ssize(of_relation); ++r) {
      const auto& relation = schema.relations()[r];
      if (relation.target != schema.type_of(v) || relation.name == "unused") continue;
      const auto& rows = of_relation[r];
      for (auto k = rows.row_begin(v); k < rows.row_end(v); ++k) {
        if (schema.type_of(rows.indices[k]) != relation.source) continue;
        a.indices.push_back(static_cast<Index>(schema.column(r, rows.indices[k])));
        if (weighted) a.values.push_back(rows.values[k]);
      }
    }
    a.indptr.push_back(std::ssize(a.indices));
  }
  return a;
}

/// The same spread over the grid.
template <class Index>
DistCsr<Index> typed_matrix(const Grid& grid, const Schema& schema, const Csr<Index>& whole,
                            const Ownership& ownership, std::span<const std::uint16_t> parts = {}) {
  auto a = parts.empty() ? distribute(grid, whole, ownership)
                         : distribute_cut(grid, whole, ownership, parts, true);
  set_schema(a, schema, true);
  return a;
}

}  // namespace espalier
