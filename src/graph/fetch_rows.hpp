// Rows of a table of which every rank holds a stretch, brought to the ranks that want them, in any
// order and as often as they like; a few million values travel at a time.
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

}  // namespace espalier
