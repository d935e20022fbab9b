// Which entries of a matrix have rows in a store, and where. A store of such rows is asked for
// numbers of entries: entry (v, u) of a matrix with N columns is v N + u.
//
//     my rows of the matrix     v0: u3 u7      v1: -      v2: u1      columns of entries with rows
//     rows of the store             0  1                      2       and one of zeros, 3
//
// An entry that is not there has the row of zeros: self loops that a matrix was given, and entries
// of relations without features.
#pragma once

#include <cstdint>
#include <variant>

#include "espalier/partition/group_by_owner.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

template <class Space>
struct EntryIndexOn {
  /// Of my rows of the matrix, the entries that have rows; columns ascend.
  std::variant<Csr<std::int32_t, Space>, Csr<std::int64_t, Space>> entries;

  std::int64_t columns() const {
    return std::visit([](const auto& rows) { return rows.columns; }, entries);
  }
};
using EntryIndex = EntryIndexOn<Cpu>;

/// A copy in the memory of the GPU.
EntryIndexOn<Cuda> to_device(const Cuda& cuda, const EntryIndex& index);

/// rows[k] = numbers[k] / columns: the rows that entries lie in.
void rows_of_entries(const Cpu&, const std::int64_t* numbers, std::int64_t count, std::int64_t columns,
                     std::int64_t* rows);
void rows_of_entries(const Cuda&, const std::int64_t* numbers, std::int64_t count, std::int64_t columns,
                     std::int64_t* rows);

/// The ids of groups become numbers of entries, where the list of their rows was grouped by owner.
/// Id: int32_t or int64_t.
template <class Id, class Space>
void put_entries(const Space&, const std::int64_t* numbers, OwnerGroups<Id, Space>& groups);

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

/// ids[0 .. count), numbers of entries of my rows, become rows of the store. `place`: of a row of
/// the matrix among mine.
template <class Id, class Space>
void find_entries(const Space&, const EntryIndexOn<Space>& index, const PlaceOf& place, Id* ids,
                  std::int64_t count);

}  // namespace espalier
