// Matrices between this program's tests and CombBLAS, the oracle of some of them: entries of a map,
// which every rank has whole.
//
// To be included last: CombBLAS wants MPI declared and leaves macros behind (Max, Assert) that
// GoogleTest cannot read.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "mpi_test.hpp"

#include <CombBLAS/CombBLAS.h>

namespace espalier {

/// (row, column) -> value, in integers.
using EntryMap = std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t>;

struct Entry {
  std::int64_t row, column;
  std::int64_t value;
};

using LocalMatrix = combblas::SpDCCols<std::int64_t, std::int64_t>;
using SquareGridMatrix = combblas::SpParMat<std::int64_t, std::int64_t, LocalMatrix>;
using PlusTimes = combblas::PlusTimesSRing<std::int64_t, std::int64_t>;

// Rank r brings the entries k with k mod p = r. Vectors of different lengths are not CombBLAS'
// strength: the last ones repeat the first entry, and of equal entries one is kept.
inline SquareGridMatrix to_combblas(const std::shared_ptr<combblas::CommGrid>& grid, std::int64_t rows,
                                    std::int64_t columns, const EntryMap& entries) {
  const auto p = static_cast<std::size_t>(test_world().size()),
             me = static_cast<std::size_t>(test_world().rank());
  const std::vector<std::pair<std::pair<std::int64_t, std::int64_t>, std::int64_t> > list(entries.begin(),
                                                                                          entries.end());
  std::vector<std::int64_t> i, j, values;
  for (std::size_t at = 0; at < list.size(); at += p) {
    const auto& [place, value] = list[at + me < list.size() ? at + me : 0];
    i.push_back(place.first);
    j.push_back(place.second);
    values.push_back(value);
  }
  return SquareGridMatrix(rows, columns, {i, grid}, {j, grid}, {values, grid});
}

// All entries, on every rank. CombBLAS gives each rank of its q x q grid rows/q x columns/q, the
// last ones the rest.
inline EntryMap from_combblas(SquareGridMatrix& matrix) {
  auto& grid = *matrix.getcommgrid();
  const auto first_row = grid.GetRankInProcCol() * (matrix.getnrow() / grid.GetGridRows());
  const auto first_column = grid.GetRankInProcRow() * (matrix.getncol() / grid.GetGridCols());
  std::vector<Entry> mine;
  for (auto column = matrix.seq().begcol(); column != matrix.seq().endcol(); ++column)
    for (auto entry = matrix.seq().begnz(column); entry != matrix.seq().endnz(column); ++entry)
      mine.push_back({first_row + entry.rowid(), first_column + column.colid(), entry.value()});
  EntryMap entries;
  for (const auto& [row, column, value] : test_world().all_gather_v(std::span<const Entry>(mine), "check"))
    entries[{row, column}] = value;
  return entries;
}

}  // namespace espalier
