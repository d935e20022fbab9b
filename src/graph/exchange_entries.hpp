// From the entries of my rows to whoever has other rows: what an entry asks or brings goes to the
// owner of the row that it names, a few million entries at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "espalier/base/group_stably.hpp"
#include "espalier/base/row_range.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

/// Collective. Goes through the entries of `rows`, all that this rank has, by make(row of mine,
/// place of the entry, sent), which adds to `sent` what is for the owner of row Item::row, of even
/// ranges of `n` rows. Calls take(sent, its counts by rank, received) after each round, as often on
/// every rank.
template <class Item, class Index, class Make, class Take>
void exchange_entries(const Communicator& comm, std::int64_t n, const Csr<Index>& rows, const char* label,
                      Make make, Take take) {
  // Of a rank, and of all: they may all ask the same one, which has the row of a hub.
  constexpr std::int64_t kPerRound = std::int64_t{1} << 20, kOfAll = 16 * kPerRound;
  const auto per_round = std::clamp<std::int64_t>(kOfAll / comm.size(), 1, kPerRound);
  const auto rounds = comm.all_reduce(rows.entries() / per_round + 1, Reduction::kMax, label);
  std::int64_t row = 0, at = 0;
  for (std::int64_t round = 0; round < rounds; ++round) {
    Buffer<Item> sent;
    for (const auto end = std::min(at + per_round, rows.entries()); at < end; ++at) {
      while (rows.row_end(row) <= at) ++row;
      make(row, at, sent);
    }
    const auto counts = group_stably(sent, comm.size(),
                                     [&](const Item& item) { return even_owner(n, comm.size(), item.row); });
    take(sent, counts, comm.all_to_all_v(std::span<const Item>(sent), counts, label));
  }
}

}  // namespace espalier
