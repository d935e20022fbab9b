// Rows of a matrix, wherever they lie, in segments: the frontiers of batches. The rows of a segment
// are summed together, or meet a list of columns together.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <variant>
#include <vector>

#include "espalier/base/fixed_point.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/base/shared_list.hpp"
#include "espalier/sparse/csr.hpp"
#include "espalier/sparse/entries.hpp"
#include "espalier/sparse/sum_rows.hpp"

namespace espalier {

// Rows of a matrix cut into pieces of at most kPieceEntries entries: what one warp of a GPU goes
// through. The rows of real graphs differ by orders of magnitude; pieces do not.

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

/// The integer that an entry counts in a sum of rows: 1, or the fixed-point square of its value.
struct EntryWeight {
  bool squared = false;
  bool skip_zeros = false;     ///< an entry of value 0 counts 0
  bool equal_in_rows = false;  ///< said of the matrix: each row's values are equal
  int shift = 0;               ///< of fixed_point_weight
  ESPALIER_HD std::uint64_t operator()(const float* value) const {
    if (!squared) return skip_zeros && value != nullptr && *value == 0 ? 0 : 1;
    const double entry = value == nullptr ? 1.0 : static_cast<double>(*value);
    return fixed_point_weight(entry * entry, shift);
  }
};

template <class Index, class Space = Cpu>
struct SegmentedRows {
  Array<Space, RowView<Index>> rows;        ///< segment k has the rows offsets[k] .. offsets[k+1]
  SharedList<std::int64_t, Space> offsets;  ///< [segments + 1]
  std::int64_t columns = 0;                 ///< of the matrix
  bool has_values = false;                  ///< of the matrix
  /// On a GPU, the pieces of the rows from their first use on.
  mutable ForSpace<Space, std::monostate, std::optional<RowPieces<Index>>> pieces = {};

  std::int64_t segments() const { return offsets.size() - 1; }
};

/// Sums of several segments, one under the other: list g has columns[offsets[g] .. offsets[g+1]),
/// ascending, and beside them positive sums.
template <class Index, class Space = Cpu>
struct Sums {
  SharedList<std::int64_t, Space> offsets;  ///< [lists + 1]
  Array<Space, Index> columns;
  Array<Space, std::uint64_t> sums;

  std::int64_t lists() const { return offsets.size() - 1; }
};

/// What a sum gives at a time: on the CPU that of one segment, on a GPU those of consecutive ones.
template <class Index, class Space>
using SumOn = ForSpace<Space, SparseSum<Index>, Sums<Index, Cuda>>;

/// Takes the sums of the segments from `first` on, and may change them. On the CPU it is called by
/// several threads at once, in any order; on a GPU in the order of the segments.
template <class Index, class Space = Cpu>
using SumVisitor = std::function<void(std::int64_t first, SumOn<Index, Space>& sums)>;

/// Of every segment: what its first rows sum up to, which earlier segments were.
template <class Index>
struct EarlierSums {
  std::vector<std::int64_t> rows;  ///< [segments] how many
  std::vector<SparseSum<Index>> sums;
};

/// Visits the sum of the rows of every segment, an entry counting weight(its value); of rows that
/// `earlier` has the sum of, only that is read. Sums must stay below 2^64. On a GPU segments are
/// worked on in groups whose dense sums, 8 bytes for each column, fit `budget` bytes, one at least;
/// 0: a share of the memory that is free.
template <class Index>
void sum_segments(const Cpu& cpu, const SegmentedRows<Index>& rows, const EntryWeight& weight,
                  const SumVisitor<Index>& visit, const EarlierSums<Index>* earlier = nullptr);
template <class Index>
void sum_segments(const Cuda& cuda, const SegmentedRows<Index, Cuda>& rows, const EntryWeight& weight,
                  const SumVisitor<Index, Cuda>& visit, std::int64_t budget = 0);

/// The same sums, kept.
template <class Index>
Sums<Index> stack_sums(const Cpu& cpu, const SegmentedRows<Index>& rows, const EntryWeight& weight);
template <class Index>
Sums<Index, Cuda> stack_sums(const Cuda& cuda, const SegmentedRows<Index, Cuda>& rows,
                             const EntryWeight& weight);

/// Visits, for every k < count, the sum of those lists l of `partial` with target[l] == k.
/// Columns are below `columns`. Budget as above.
template <class Index>
void merge_sums(const Cpu& cpu, const Sums<Index>& partial, const SharedList<std::int64_t>& target,
                std::int64_t count, std::int64_t columns, const SumVisitor<Index>& visit);
template <class Index>
void merge_sums(const Cuda& cuda, const Sums<Index, Cuda>& partial,
                const SharedList<std::int64_t, Cuda>& target, std::int64_t count, std::int64_t columns,
                const SumVisitor<Index, Cuda>& visit, std::int64_t budget = 0);

/// For every row the entries in the columns of its segment: ids are places in that list. Segment k
/// has columns[offsets[k] .. offsets[k+1]), memory of the space: ascending, no id twice, fewer than
/// 2^31. On a GPU segments go in groups whose marks fit `budget` bytes; 0: a default.
template <class Index>
Entries<std::int32_t> select_columns(const Cpu& cpu, const SegmentedRows<Index>& rows, const Index* columns,
                                     const SharedList<std::int64_t>& offsets);
template <class Index>
Entries<std::int32_t, Cuda> select_columns(const Cuda& cuda, const SegmentedRows<Index, Cuda>& rows,
                                           const Index* columns,
                                           const SharedList<std::int64_t, Cuda>& offsets,
                                           std::int64_t budget = 0);

}  // namespace espalier
