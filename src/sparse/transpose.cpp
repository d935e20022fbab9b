#include "espalier/sparse/transpose.hpp"

#include <algorithm>

#include "espalier/base/buffer.hpp"
#include "espalier/base/error.hpp"

namespace espalier {
namespace {

constexpr std::int64_t kEntriesPerPart = 8192;  // at least, for a thread of its own

/// The first row of part `part` of `parts`: parts have about equally many entries.
std::int64_t first_row(const BlockView<Cpu>& block, std::int64_t part, std::int64_t parts) {
  if (part == parts) return block.rows;
  const auto* const begin = block.indptr;
  return std::lower_bound(begin, begin + block.rows, begin[0] + block.entries() * part / parts) - begin;
}

/// next[j] += the number of entries in column j of the rows [begin, end).
void count_columns(const BlockView<Cpu>& block, std::int64_t begin, std::int64_t end, std::int64_t* next) {
  for (std::int64_t e = block.row_begin(begin); e < block.row_begin(end); ++e) ++next[block.indices[e]];
}

/// Row starts of the transpose. In counts [parts, columns] each part's counts become the places
/// where its first entry of each column goes: after those of the parts before.
void place_parts(std::int64_t parts, std::int64_t columns, std::int64_t* counts,
                 Buffer<std::int64_t>& indptr) {
  indptr.resize(columns + 1);
  std::int64_t place = 0;
  for (std::int64_t j = 0; j < columns; ++j) {
    indptr[j] = place;
    for (std::int64_t part = 0; part < parts; ++part) {
      const std::int64_t count = counts[part * columns + j];
      counts[part * columns + j] = place;
      place += count;
    }
  }
  indptr.back() = place;
}

/// Writes the entries of rows [begin, end) to their places, and, with kPositions, their origins.
template <bool kPositions>
void scatter(const BlockView<Cpu>& block, std::int64_t begin, std::int64_t end, std::int64_t* next,
             Block& result, std::int32_t* positions) {
  for (std::int64_t i = begin; i < end; ++i)
    for (std::int64_t e = block.row_begin(i); e < block.row_end(i); ++e) {
      const auto place = static_cast<std::size_t>(next[block.indices[e]]++);
      result.indices[place] = static_cast<std::int32_t>(i);
      if (block.has_values()) result.values[place] = block.values[e];
      if constexpr (kPositions) positions[place] = static_cast<std::int32_t>(e - block.indptr[0]);
    }
}

}  // namespace

void transpose(const Cpu& cpu, const BlockView<Cpu>& block, Block& result, Buffer<std::int32_t>* positions) {
  const auto entries = static_cast<std::size_t>(block.entries());
  result.rows = block.columns;
  result.columns = block.rows;
  result.indices.resize(entries);
  result.values.resize(block.has_values() ? entries : 0);
  result.weighted = block.has_values();
  if (positions != nullptr) {
    ESPALIER_CHECK(block.entries() < std::int64_t{1} << 31, "a block of {} entries", block.entries());
    positions->resize(entries);
  }
  const std::int64_t parts = std::clamp<std::int64_t>(block.entries() / kEntriesPerPart, 1, cpu.threads);
  const auto counts =
      workspace<struct TransposePlaces, std::int64_t>(static_cast<std::size_t>(parts * block.columns));
  std::int64_t* const next = counts.data();
  const auto in_parts = [&](const auto& work) {
// All threads, even without a part: OpenMP would end those that a smaller team leaves out.
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (parts > 1)
    for (std::int64_t part = 0; part < parts; ++part)
      work(first_row(block, part, parts), first_row(block, part + 1, parts), next + part * block.columns);
  };
  in_parts([&](std::int64_t begin, std::int64_t end, std::int64_t* places) {
    std::fill_n(places, block.columns, 0);
    count_columns(block, begin, end, places);
  });
  place_parts(parts, block.columns, next, result.indptr);
  in_parts([&](std::int64_t begin, std::int64_t end, std::int64_t* places) {
    if (positions == nullptr)
      scatter<false>(block, begin, end, places, result, nullptr);
    else
      scatter<true>(block, begin, end, places, result, positions->data());
  });
}

Block transpose(const BlockView<Cpu>& block) {
  Block result;
  transpose(Cpu{1}, block, result);
  return result;
}

}  // namespace espalier
