// Between ranks, a few million values at a time: rows of a table of which every rank holds a
// stretch, brought to the ranks that want them, in any order and as often as they like; and what
// things ask of rows, or bring to them, sent to whoever owns these.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "espalier/base/group_stably.hpp"
#include "espalier/base/row_range.hpp"
#include "espalier/comm/communicator.hpp"
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
  struct Wish {
    std::int64_t row, place;
  };
  const auto columns = comm.all_reduce(mine.rows > 0 ? mine.columns : 0, Reduction::kMax, kLabel);
  const auto per_round =
      std::clamp<std::int64_t>(kOfAll / comm.size(), 1, kValuesPerRound) / (columns + 1) + 1;
  const auto rounds = comm.all_reduce(std::ssize(wanted) / per_round + 1, Reduction::kMax, kLabel);
  Matrix<T> found(std::ssize(wanted), columns);
  for (std::int64_t round = 0; round < rounds; ++round) {
    Buffer<Wish> wishes;
    const auto end = std::min(per_round * (round + 1), std::ssize(wanted));
    for (auto k = per_round * round; k < end; ++k) wishes.push_back({wanted[k], k});
    auto counts = group_stably(wishes, comm.size(), [&](const Wish& wish) {
      return std::upper_bound(starts.begin(), starts.end(), wish.row) - starts.begin() - 1;
    });
    Buffer<std::int64_t> asked;
    for (const auto& wish : wishes) asked.push_back(wish.row);
    auto requests = comm.all_to_all_v(std::span<const std::int64_t>(asked), counts, kLabel);
    Matrix<T> answers(std::ssize(requests.data), columns);
    for (std::int64_t k = 0; k < answers.rows; ++k)
      std::copy_n(mine.row(requests.data[k] - starts[comm.rank()]), columns, answers.row(k));
    for (auto* list : {&counts, &requests.counts})
      for (auto& count : *list) count *= columns;
    Matrix<T> got(std::ssize(wishes), columns);
    comm.all_to_all_v(answers.data.data(), requests.counts, got.data.data(), counts, kLabel);
    for (std::int64_t k = 0; k < got.rows; ++k) std::copy_n(got.row(k), columns, found.row(wishes[k].place));
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

/// Collective. Goes through so many things of this rank, a round of them at a time: make(k, sent)
/// adds to `sent` what thing k has for the owner of row Item::row, of even ranges of `n` rows: room
/// is made for `of_each` items of a thing. Calls take(sent, its counts by rank, received) after
/// each round, as often on every rank.
template <class Item, class Make, class Take>
void exchange_in_rounds(const Communicator& comm, std::int64_t n, std::int64_t things, std::int64_t per_round,
                        std::int64_t of_each, const char* label, Make make, Take take) {
  const auto rounds = comm.all_reduce(things / per_round + 1, Reduction::kMax, label);
  std::int64_t at = 0;
  for (std::int64_t round = 0; round < rounds; ++round) {
    Buffer<Item> sent;
    const auto end = even_range(things, rounds, round).end;
    sent.reserve(static_cast<std::size_t>((end - at) * of_each));
    for (; at < end; ++at) make(at, sent);
    const auto counts = group_stably(sent, comm.size(),
                                     [&](const Item& item) { return even_owner(n, comm.size(), item.row); });
    take(sent, counts, comm.all_to_all_v(std::span<const Item>(sent), counts, label));
  }
}

/// Collective. The same of the entries of `rows`, all that this rank has, by make(row of mine,
/// place of the entry, sent).
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
