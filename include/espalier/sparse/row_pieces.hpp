// Rows of a matrix cut into pieces of at most kPieceEntries entries: what one warp of a GPU goes through. The rows of
// real graphs differ by orders of magnitude; pieces do not.
#pragma once

#include <cstdint>
#include <vector>

#include "espalier/base/device_array.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

inline constexpr std::int64_t kPieceEntries = 512;

/// The entries begin .. begin + size of a matrix, all of one row. size > 0.
struct RowPiece {
  std::int64_t begin;
  std::int32_t size;
  std::int32_t group;  ///< which of several lists of rows the row stands in
};

/// The pieces of the rows of several lists, one under the other.
struct RowPieces {
  DeviceArray<RowPiece> pieces;              ///< in the order of the rows and of their entries
  DeviceArray<std::int64_t> of_row;          ///< [rows + 1]: row r has the pieces of_row[r] .. of_row[r + 1]
  std::vector<std::int64_t> of_group = {0};  ///< [groups + 1], for the host

  std::int64_t rows() const { return static_cast<std::int64_t>(of_row.size()) - 1; }
  std::int64_t groups() const { return std::ssize(of_group) - 1; }
  std::int64_t count() const { return of_group.back(); }
};

/// List g is rows[offsets[g] .. offsets[g + 1]), row numbers of `matrix`. `rows` and `offsets` [groups + 1], which
/// begins with 0, are device memory; `count` rows in all. The host waits once.
template <class Index>
RowPieces cut_rows(const Cuda& cuda, const Csr<Index, Cuda>& matrix, const std::int64_t* rows,
                   std::int64_t count, const std::int64_t* offsets, std::int64_t groups);

}  // namespace espalier
