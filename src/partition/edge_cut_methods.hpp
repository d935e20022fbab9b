// The methods of a vertex cut (espalier/partition/edge_parts.hpp), one by one, for the table in
// edge_parts.cpp; and what they share: what is said of pairs of the symmetric pattern, from the
// owner of one end to that of the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "espalier/comm/owners.hpp"
#include "espalier/partition/edge_parts.hpp"

namespace espalier {

/// Ours: budgets, hubs taken piece by piece, all parts at once, and an eighth of them at a time;
/// then even_out(). Of both, what leaves the largest part fewer vertices.
Buffer<std::uint16_t> expand_evenly(const EdgeCutTask& task);
/// DistributedNE, with tau = 1.01.
Buffer<std::uint16_t> expand_as_dne(const EdgeCutTask& task);
/// AdaDNE as it is published.
Buffer<std::uint16_t> expand_as_adadne(const EdgeCutTask& task);
/// HDRF: one pass over the pairs on rank 0.
Buffer<std::uint16_t> stream_pairs(const EdgeCutTask& task);

/// Collective. Moves pairs of one vertex to parts that both ends have, for fewer copies and until
/// parts are even in vertices and pairs, or nothing more can move. No vertex gets more parts.
/// Returns the most vertices of a part.
std::int64_t even_out(const EdgeCutTask& task, Buffer<std::uint16_t>& parts);

// What is said of pairs of the pattern from the owner of one end to that of the other.

inline constexpr const char* kCut = "vertex cut";

/// A row and a column, on their way to the row's owner, with a part that is meant.
struct Proposal {
  std::int64_t row, column;
  std::uint16_t part;
};

/// Collective. Calls take(item) for each item, on the rank that has its row, some at a time.
template <class Item, class Take>
void deliver(const EdgeCutTask& task, const Buffer<Item>& items, Take take) {
  constexpr std::int64_t kPerRound = std::int64_t{1} << 20;
  exchange_in_rounds<Item>(
      task.world, task.nodes, std::ssize(items), kPerRound, 1, kCut,
      [&](std::int64_t k, auto& sent) { sent.push_back(items[k]); },
      [&](const auto&, const auto&, const auto& got) {
        for (const auto& of : got.data) take(of);
      });
}

/// The entry of a row of this rank, counted from its first, in this column.
inline std::int64_t entry_at(const Csr<std::int64_t>& rows, std::int64_t row, std::int64_t column) {
  const auto columns = rows.row_indices(row);
  return rows.row_begin(row) + (std::ranges::lower_bound(columns, column) - columns.begin());
}

/// The parts of the entries of a row, ascending, each once.
inline void parts_of_row(const Csr<std::int64_t>& rows, const Buffer<std::uint16_t>& parts, std::int64_t row,
                         std::vector<std::uint16_t>& found) {
  found.assign(parts.begin() + rows.row_begin(row), parts.begin() + rows.row_end(row));
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
}

/// A random word for something in [0, 1).
inline double fraction_of(std::uint64_t word) {
  return 0x1p-64 * static_cast<double>(word);
}

}  // namespace espalier
