// Between ranks, a few million values at a time: rows of a table of which every rank holds a
// stretch, brought to the ranks that want them, in any order and as often as they like; and what
// things ask of rows, or bring to them, sent to whoever owns these.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "espalier/base/row_range.hpp"
#include "espalier/comm/owners.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

/// Collective. Where the stretches of all ranks begin, and the end: [ranks + 1].
inline std::vector<std::int64_t> stretches(const Communicator& comm, std::int64_t mine) {
  std::vector<std::int64_t> starts = {0};
  for (const auto size : comm.all_gather(mine, "rows of a table")) starts.push_back(starts.back() + size);
  return starts;
}

/// The same of even ranges.
inline std::vector<std::int64_t> even_stretches(std::int64_t n, int ranks) {
  std::vector<std::int64_t> starts = {0};
  for (int rank = 0; rank < ranks; ++rank) starts.push_back(even_range(n, ranks, rank).end);
  return starts;
}

/// Collective. Row k of the result is row wanted[k] of the table, whose rows starts[r] ..
/// starts[r + 1] rank r has: `mine`. Ranks without rows may pass an empty matrix of any width.
template <class T>
Matrix<T> fetch_rows(const Communicator& comm, std::span<const std::int64_t> starts, const Matrix<T>& mine,
                     std::span<const std::int64_t> wanted) {
  constexpr const char* kLabel = "rows of a table";
  constexpr std::int64_t kValuesPerRound = std::int64_t{1} << 20, kOfAll = 16 * kValuesPerRound;
  const auto columns = comm.all_reduce(mine.rows > 0 ? mine.columns : 0, Reduction::kMax, kLabel);
  const auto per_round =
      std::clamp<std::int64_t>(kOfAll / comm.size(), 1, kValuesPerRound) / (columns + 1) + 1;
  const auto rounds = comm.all_reduce(std::ssize(wanted) / per_round + 1, Reduction::kMax, kLabel);
  Matrix<T> found(std::ssize(wanted), columns);
  for (std::int64_t round = 0; round < rounds; ++round) {
    const auto begin = std::min(per_round * round, std::ssize(wanted));
    const auto end = std::min(begin + per_round, std::ssize(wanted));
    const auto got = answers_of_owners<T>(
        comm, wanted.subspan(begin, end - begin),
        [&](std::int64_t row) { return std::ranges::upper_bound(starts, row) - starts.begin() - 1; },
        [&](std::int64_t row, T* to) { std::copy_n(mine.row(row - starts[comm.rank()]), columns, to); },
        kLabel, columns);
    std::ranges::copy(got, found.row(begin));
  }
  return found;
}

/// Collective. The same of a list.
template <class T>
Buffer<T> fetch_entries(const Communicator& comm, std::span<const std::int64_t> starts, Buffer<T> mine,
                        std::span<const std::int64_t> wanted) {
  Matrix<T> table;
  table.rows = std::ssize(mine);
  table.columns = 1;
  table.data = std::move(mine);
  return std::move(fetch_rows(comm, starts, table, wanted).data);
}

/// Collective. As exchange_in_rounds() (comm/owners.hpp), of the entries of `rows`, all that this
/// rank has, by make(row of mine, place of the entry, sent).
template <class Item, class Index, class Make, class Take>
void exchange_entries(const Communicator& comm, std::int64_t n, const Csr<Index>& rows, const char* label,
                      Make make, Take take) {
  // Of a rank, and of all: they may all ask the same one, which has the row of a hub.
  constexpr std::int64_t kPerRound = std::int64_t{1} << 20, kOfAll = 16 * kPerRound;
  std::int64_t row = 0;
  exchange_in_rounds<Item>(
      comm, n, rows.entries(), std::clamp<std::int64_t>(kOfAll / comm.size(), 1, kPerRound), 0, label,
      [&](std::int64_t e, auto& sent) {
        while (rows.row_end(row) <= e) ++row;
        make(row, e, sent);
      },
      take);
}

}  // namespace espalier
