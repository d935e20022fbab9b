// A sparse matrix in compressed sparse row form.
//
// Row i holds the entries indices[indptr[i] .. indptr[i+1]), columns ascending unless a function says
// otherwise. `values` is empty for a matrix whose entries are all 1 (the adjacency matrix of an unweighted
// graph) or holds one float per entry.
//
// Index is int32_t or int64_t: adjacency uses int32_t while the graph has fewer than 2^31 vertices (4 bytes
// per edge), int64_t beyond. A *block*, what one layer of one minibatch sees, is a Csr<int32_t> with local
// ids and values.
#pragma once

#include <cstdint>
#include <span>

#include "espalier/base/buffer.hpp"

namespace espalier {

template <class Index>
struct Csr {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  Buffer<std::int64_t> indptr = Buffer<std::int64_t>(1, 0);  ///< [rows + 1]
  Buffer<Index> indices;                                     ///< [entries]
  Buffer<float> values;                                      ///< [entries], or empty: all 1

  std::int64_t entries() const { return static_cast<std::int64_t>(indices.size()); }
  bool has_values() const { return !values.empty(); }
  std::int64_t row_begin(std::int64_t row) const { return indptr[static_cast<std::size_t>(row)]; }
  std::int64_t row_end(std::int64_t row) const { return indptr[static_cast<std::size_t>(row) + 1]; }
  std::int64_t row_size(std::int64_t row) const { return row_end(row) - row_begin(row); }
  std::span<const Index> row_indices(std::int64_t row) const {
    return {indices.data() + row_begin(row), static_cast<std::size_t>(row_size(row))};
  }
  /// The values of a row; empty for a matrix without values.
  std::span<const float> row_values(std::int64_t row) const {
    if (!has_values()) return {};
    return {values.data() + row_begin(row), static_cast<std::size_t>(row_size(row))};
  }
};

/// One row of a matrix that lies elsewhere.
template <class Index>
struct RowView {
  const Index* indices = nullptr;  ///< column ids, ascending
  const float* values = nullptr;   ///< or null: all 1
  std::int64_t size = 0;

  std::span<const Index> columns() const { return {indices, static_cast<std::size_t>(size)}; }
};

template <class Index>
RowView<Index> row_view(const Csr<Index>& matrix, std::int64_t row) {
  return {matrix.indices.data() + matrix.row_begin(row),
          matrix.has_values() ? matrix.values.data() + matrix.row_begin(row) : nullptr, matrix.row_size(row)};
}

/// What layer l of one minibatch computes with: rows F[l], columns F[l-1], both as positions in those lists.
/// The rows' vertices are the first `rows` columns (destinations are a prefix of sources).
using Block = Csr<std::int32_t>;

}  // namespace espalier
