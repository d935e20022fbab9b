// Rows of which few numbers are not 0, kept as pairs: row k of a matrix [rows, 2 m] is
//
//     c_0 x_0 c_1 x_1 ... c_(m-1) x_(m-1)       x_j is the number in column c_j
//
// with ascending columns, then pairs of zeros. All rows are as long as the one with most numbers,
// so that they are stored, kept and sent as any others are. A column is a number of the matrix's
// type, so below 2^24 (kMostPairedColumns).
#pragma once

#include <cstdint>

#include "espalier/base/execution.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

inline constexpr std::int64_t kMostPairedColumns = std::int64_t{1} << 24;

/// A view of such rows.
template <class T, class Space = Cpu>
struct PairedRows {
  ConstMatrixView<T, Space> pairs;
  std::int64_t columns = 0;  ///< of the matrix that they stand for

  std::int64_t pairs_of_row() const { return pairs.columns / 2; }
};

/// to [rows, columns], resized: the matrix.
template <class T>
void widen_rows(const Cpu&, const PairedRows<T>& rows, Matrix<T>& to);
template <class T>
void widen_rows(const Cuda&, const PairedRows<T, Cuda>& rows, Matrix<T, Cuda>& to);

/// The matrix as a sparse one; its memory is reused. On the CPU it has the entries that are not 0;
/// on a GPU every pair is one, and what is 0 stands in some column of its own, so that the host
/// knows how many the first rows have.
template <class T>
void to_entries(const Cpu&, const PairedRows<T>& rows, Csr<std::int32_t>& to);
template <class T>
void to_entries(const Cuda&, const PairedRows<T, Cuda>& rows, Csr<std::int32_t, Cuda>& to);

/// The first rows of what to_entries() made.
inline BlockView<Cpu> first_rows(const Csr<std::int32_t>& entries, std::int64_t count) {
  return {count,
          entries.columns,
          entries.indptr[count],
          entries.indptr.data(),
          entries.indices.data(),
          Beside<const float>(entries.values)};
}
template <class Space>
requires std::is_same_v<Space, Cuda> BlockView<Space> first_rows(const Csr<std::int32_t, Space>& entries,
                                                                 std::int64_t count) {
  return {count,
          entries.columns,
          entries.rows == 0 ? 0 : entries.entries() / entries.rows * count,
          entries.indptr.data(),
          entries.indices.data(),
          Beside<const float>(entries.values)};
}

}  // namespace espalier
