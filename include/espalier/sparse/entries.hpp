// Rows of picks: some entries of some sparse rows. What draws put out, and what exchanges send; and
// how the rows that threads write become one list of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "espalier/base/device_array.hpp"
#include "espalier/base/execution.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

/// Row r has ids[offsets[r] .. offsets[r+1]), and the values beside them, unless they are empty.
template <class Id, class Space = Cpu>
struct Entries {
  Array<Space, std::int64_t> offsets = no_row_starts<Space>();  ///< [rows + 1]
  Array<Space, Id> ids;                                         ///< [entries]
  Array<Space, float> values;                                   ///< [entries], or empty

  std::int64_t rows() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
  std::int64_t entries() const { return static_cast<std::int64_t>(ids.size()); }
  std::int64_t bytes() const { return entries() * sizeof(Id) + values.size() * sizeof(float); }

  // On the CPU rows are looked at, and grow one by one.
  std::int64_t begin(std::int64_t row) const { return offsets[row]; }
  std::int64_t size(std::int64_t row) const { return offsets[row + 1] - offsets[row]; }
  void end_row() { offsets.push_back(entries()); }
  void clear() {
    offsets.resize(1);
    ids.clear();
    values.clear();
  }
};

// Rows of entries that threads write, chunk by chunk, put together in order.

/// all = what fill(first, last, out) appends to an empty `out` for ranges [first, last) that cover
/// [0, rows), in order. Several threads call it. `all` keeps its memory.
template <class Id, class Fill>
void collect_rows(const Cpu& cpu, std::int64_t rows, const Fill& fill, Entries<Id>& all) {
  constexpr std::int64_t kChunk = 512;
  all.clear();
  if (rows == 0) return;
  if (cpu.threads == 1 || rows <= kChunk) return fill(std::int64_t{0}, rows, all);
  std::vector<Entries<Id>> pieces((rows + kChunk - 1) / kChunk);
#pragma omp parallel for num_threads(cpu.threads) schedule(dynamic, 1)
  for (std::int64_t piece = 0; piece < std::ssize(pieces); ++piece)
    fill(piece * kChunk, std::min(rows, (piece + 1) * kChunk), pieces[piece]);

  std::vector<std::int64_t> start(pieces.size() + 1, 0);
  std::size_t values = 0;
  for (std::size_t k = 0; k < pieces.size(); ++k) {
    start[k + 1] = start[k] + pieces[k].entries();
    values += pieces[k].values.size();
  }
  all.offsets.resize(rows + 1);
  all.ids.resize(start.back());
  all.values.resize(values);
#pragma omp parallel for num_threads(cpu.threads) schedule(dynamic, 1)
  for (std::int64_t piece = 0; piece < std::ssize(pieces); ++piece) {
    const auto& from = pieces[piece];
    const auto at = start[piece];
    for (std::int64_t row = 0; row < from.rows(); ++row)
      all.offsets[piece * kChunk + row] = at + from.begin(row);
    std::ranges::copy(from.ids, all.ids.begin() + at);
    std::ranges::copy(from.values, all.values.begin() + (values > 0 ? at : 0));
  }
  all.offsets.back() = start.back();
}

}  // namespace espalier
