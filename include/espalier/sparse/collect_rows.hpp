// Rows of entries that threads write, chunk by chunk, put together in order.
#pragma once

#include <algorithm>
#include <vector>

#include "espalier/base/execution.hpp"
#include "espalier/sparse/entries.hpp"

namespace espalier {

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
