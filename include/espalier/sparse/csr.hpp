// A sparse matrix in compressed sparse row form.
//
// Row i holds the entries indices[indptr[i] .. indptr[i+1]), columns ascending unless a function
// says otherwise. `values` is empty where all entries are 1 (an unweighted graph), and where there
// are no entries: then `weighted` says which it is.
//
// Index is int32_t or int64_t: adjacency uses int32_t while the graph has fewer than 2^31 vertices
// (4 bytes per edge), int64_t beyond. A *block*, what one layer of one minibatch sees, is a
// Csr<int32_t> with local ids and values.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "espalier/base/execution.hpp"
#include "espalier/base/host_device.hpp"

namespace espalier {

// What may lie beside the entries of a matrix: their values, or their relations.

/// The first of an array beside entries, or none. Who makes one says which, with an array or with
/// nothing: data() of an array without elements is null, but the array is there. Read like a
/// pointer, which is null where there is none, and only there. Small: copied into kernels.
template <class T>
class Beside {
 public:
  Beside() = default;
  ESPALIER_HD Beside(std::nullptr_t) {}
  /// All of an array that stays.
  template <class Array>
  requires requires(Array& array) {
    { array.data() } -> std::convertible_to<T*>;
    array.size();
  } &&(std::is_lvalue_reference_v<Array> ||
       std::ranges::enable_borrowed_range<Array>)explicit Beside(Array&& array)
      : first_(array.data() != nullptr ? array.data() : &nothing_) {
  }
  /// `there`: is there an array?
  template <class Array>
  requires std::constructible_from<Beside, Array> Beside(bool there, Array&& array)
      : Beside(there ? Beside(std::forward<Array>(array)) : Beside()) {}

  ESPALIER_HD operator T*() const { return first_; }
  ESPALIER_HD T* data() const { return first_; }
  /// Beside entries that so many stand before; none stays none.
  ESPALIER_HD Beside operator+(std::int64_t entries) const {
    Beside later;
    later.first_ = first_ == nullptr ? nullptr : first_ + entries;
    return later;
  }

 private:
  static inline std::remove_const_t<T> nothing_ = {};  ///< of an array without elements; never read
  T* first_ = nullptr;
};

/// Where the rows of a matrix without rows begin: {0} on the CPU, not said on a GPU.
template <class Space>
Array<Space, std::int64_t> no_row_starts() {
  if constexpr (std::is_same_v<Space, Cpu>)
    return Array<Space, std::int64_t>(1, 0);
  else
    return {};
}

/// The arrays may be memory of a GPU; then row_begin and the like may not be called.
template <class Index, class Space = Cpu>
struct Csr {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  Array<Space, std::int64_t> indptr = no_row_starts<Space>();  ///< [rows + 1]
  Array<Space, Index> indices;                                 ///< [entries]
  Array<Space, float> values;                                  ///< [entries], or empty: all 1
  bool weighted = false;  ///< asked where there are no entries: would they have values?

  std::int64_t entries() const { return static_cast<std::int64_t>(indices.size()); }
  bool has_values() const { return indices.empty() ? weighted : !values.empty(); }
  Beside<const float> values_beside() const& { return {has_values(), values}; }
  void values_beside() const&& = delete;
  std::int64_t row_begin(std::int64_t row) const { return indptr[row]; }
  std::int64_t row_end(std::int64_t row) const { return indptr[row + 1]; }
  std::int64_t row_size(std::int64_t row) const { return row_end(row) - row_begin(row); }
  std::span<const Index> row_indices(std::int64_t row) const& {
    return {indices.data() + row_begin(row), static_cast<std::size_t>(row_size(row))};
  }
  /// The values of a row; empty for a matrix without values.
  std::span<const float> row_values(std::int64_t row) const& {
    if (!has_values()) return {};
    return {values.data() + row_begin(row), static_cast<std::size_t>(row_size(row))};
  }
  void row_indices(std::int64_t) const&& = delete;
  void row_values(std::int64_t) const&& = delete;
};

/// One row of a matrix that lies elsewhere.
template <class Index>
struct RowView {
  const Index* indices = nullptr;   ///< column ids, ascending
  Beside<const float> values = {};  ///< or none: all 1
  std::int64_t size = 0;

  std::span<const Index> columns() const { return {indices, static_cast<std::size_t>(size)}; }
};

template <class Index>
RowView<Index> row_view(const Csr<Index>&&, std::int64_t) = delete;
template <class Index>
RowView<Index> row_view(const Csr<Index>& matrix, std::int64_t row) {
  const auto begin = matrix.row_begin(row);
  return {matrix.indices.data() + begin, matrix.values_beside() + begin, matrix.row_size(row)};
}

/// What layer l of one minibatch computes with: rows F[l], columns F[l-1], as positions in those
/// lists. The rows' vertices are the first columns (destinations are a prefix of sources).
using Block = Csr<std::int32_t>;

/// Vertices of one type that stand together in a list: places [begin, end).
struct TypeRun {
  std::int64_t begin = 0, end = 0;
  int type = 0;
};

/// Features of some of a block's entries, as feature/edge_store.hpp fetches them: row k belongs to
/// entry entries[k]. Memory of the space. Small: copied into kernels.
struct EdgeRows {
  std::int64_t count = 0, width = 0;
  const std::int32_t* entries = nullptr;  ///< [count] counted from the block's first, ascending
  const float* rows = nullptr;            ///< [count, width]
};

/// The transpose of a block, where it was made beforehand (sparse/transpose.hpp). Memory of the
/// space. Small: copied into kernels.
struct TransposeBeside {
  const std::int64_t* indptr = nullptr;   ///< [columns + 1]; null: it was not made
  const std::int32_t* indices = nullptr;  ///< rows of the block, as indptr says
  const float* values = nullptr;          ///< beside them, where the block has values
};

/// A block that lies elsewhere, in the memory of the space: a whole Csr, or a part of arrays that
/// the blocks of many minibatches share. Row i has the entries indptr[i] .. indptr[i + 1] of
/// indices and values; indptr[0] need not be 0, so indptr[rows] is not the number of entries.
template <class Space = Cpu>
struct BlockView {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t entry_count = 0;
  const std::int64_t* indptr = nullptr;       ///< [rows + 1]
  const std::int32_t* indices = nullptr;      ///< [indptr[rows]]
  Beside<const float> values = {};            ///< or none: all 1
  Beside<const std::uint8_t> relations = {};  ///< ascending in a row; or none: one relation
  std::span<const TypeRun> runs = {};         ///< of the columns, on the host; none: one type
  EdgeRows edges = {};                        ///< of entries, where a model reads features of edges
  TransposeBeside transposed = {};

  BlockView() = default;
  BlockView(std::int64_t rows_, std::int64_t columns_, std::int64_t entries_, const std::int64_t* indptr_,
            const std::int32_t* indices_, Beside<const float> values_,
            Beside<const std::uint8_t> relations_ = {})
      : rows(rows_),
        columns(columns_),
        entry_count(entries_),
        indptr(indptr_),
        indices(indices_),
        values(values_),
        relations(relations_) {}
  /// All of `block`, which must stay. A template, so that the CPU build needs no device array.
  template <class Other>
  requires std::is_same_v<Other, Space> BlockView(const Csr<std::int32_t, Other>& block)
      : BlockView(block.rows, block.columns, block.entries(), block.indptr.data(), block.indices.data(),
                  block.values_beside()) {}

  std::int64_t entries() const { return entry_count; }
  bool has_values() const { return values != nullptr; }
  bool has_relations() const { return relations != nullptr; }
  /// Of the entry at that place of `indices`.
  ESPALIER_HD int relation(std::int64_t entry) const { return relations == nullptr ? 0 : relations[entry]; }

  // Where a row lies, on the CPU.
  std::int64_t row_begin(std::int64_t row) const requires std::is_same_v<Space, Cpu> { return indptr[row]; }
  std::int64_t row_end(std::int64_t row) const requires std::is_same_v<Space, Cpu> { return indptr[row + 1]; }
  std::int64_t row_size(std::int64_t row) const requires std::is_same_v<Space, Cpu> {
    return row_end(row) - row_begin(row);
  }
  std::span<const std::int32_t> row_indices(std::int64_t row) const requires std::is_same_v<Space, Cpu> {
    return {indices + row_begin(row), static_cast<std::size_t>(row_size(row))};
  }
  /// Empty for a block without values.
  std::span<const float> row_values(std::int64_t row) const requires std::is_same_v<Space, Cpu> {
    if (!has_values()) return {};
    return {(values + row_begin(row)).data(), static_cast<std::size_t>(row_size(row))};
  }
};

/// The block in arrays of its own, with indptr[0] = 0.
inline Block copy_of(const BlockView<>& block) {
  Block copy;
  copy.rows = block.rows;
  copy.columns = block.columns;
  for (std::int64_t row = 0; row < block.rows; ++row)
    copy.indptr.push_back(block.row_end(row) - block.indptr[0]);
  const auto* const first = block.indices + block.indptr[0];
  copy.indices.assign(first, first + block.entries());
  const auto values = block.values + block.indptr[0];
  if (block.has_values()) copy.values.assign(values.data(), values.data() + block.entries());
  copy.weighted = block.has_values();
  return copy;
}

}  // namespace espalier
