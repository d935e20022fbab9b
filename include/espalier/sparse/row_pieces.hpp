// Rows of a matrix cut into pieces of at most kPieceEntries entries: what one warp of a GPU goes
// through. The rows of real graphs differ by orders of magnitude; pieces do not.
#pragma once

#include <cstdint>
#include <vector>

#include "espalier/base/shared_list.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

inline constexpr std::int64_t kPieceEntries = 512;

/// Entries that are neighbours in a row. size > 0.
template <class Index>
struct RowPiece {
  const Index* indices;
  const float* values;  ///< or null: all 1
  std::int32_t size;
  std::int32_t segment;  ///< of the row
};

/// The pieces of rows in segments.
template <class Index>
struct RowPieces {
  DeviceArray<RowPiece<Index>> pieces;         ///< in the order of the rows and of their entries
  DeviceArray<std::int64_t> of_row;            ///< [rows + 1] where those of a row begin
  std::vector<std::int64_t> of_segment = {0};  ///< [segments + 1], for the host

  std::int64_t rows() const { return static_cast<std::int64_t>(of_row.size()) - 1; }
  std::int64_t segments() const { return std::ssize(of_segment) - 1; }
  std::int64_t count() const { return of_segment.back(); }
};

/// out[k] = values[places[k]] for k < count, all memory of the GPU.
void take_at(const Cuda& cuda, const std::int64_t* values, const std::int64_t* places, std::int64_t count,
             std::int64_t* out);

/// Segment g is rows[offsets[g] .. offsets[g + 1]), device memory. The host waits once.
template <class Index>
RowPieces<Index> cut_rows(const Cuda& cuda, const RowView<Index>* rows,
                          const SharedList<std::int64_t, Cuda>& offsets);

}  // namespace espalier
