// The race of sample/draw_race.hpp on a GPU: the first of many rows, short or long. A warp goes
// through a piece of a row, 32 entries at a time, and keeps the piece's first s in memory, as they
// arrive; who is ahead of the last of them is let in, one after another. Then a warp merges the
// firsts of a row's pieces. For .cu files only.
#pragma once

#include "each_entry.hpp"
#include "espalier/base/device_algorithms.hpp"
#include "espalier/sample/draw_race.hpp"

namespace espalier {

// entries; longer ones admit fewer, shorter ones spread hubs
constexpr std::int64_t kRacePiece = 2048;

__device__ inline Runner runner_of_lane(const Runner& mine, int lane) {
  return {__shfl_sync(kAllLanes, mine.exponential, lane), __shfl_sync(kAllLanes, mine.weight, lane),
          __shfl_sync(kAllLanes, mine.place, lane)};
}

/// A warp puts `runner` in its place among first [arrived <= s], and the last of s out.
__device__ inline void admit_by_warp(const Runner& runner, std::int64_t s, Runner* first,
                                     std::int64_t& arrived) {
  std::int64_t rank = 0;
  for (auto left = arrived; left > 0;) {
    const auto half = left / 2;
    const bool behind = is_ahead(first[rank + half], runner);
    rank = behind ? rank + half + 1 : rank;
    left = behind ? left - half - 1 : half;
  }
  if (rank == s) return;
  __syncwarp();  // all have looked, here and before they were asked who enters
  if (arrived < s) ++arrived;
  const auto lane = static_cast<std::int64_t>(threadIdx.x) % kWarp;
  for (auto last = arrived - 1; last > rank; last -= kWarp) {
    const auto at = last - lane;
    Runner moved = {};
    if (at > rank) moved = first[at - 1];
    __syncwarp();
    if (at > rank) first[at] = moved;
    __syncwarp();
  }
  if (lane == 0) first[rank] = runner;
  __syncwarp();
}

/// first [s] of runner_of(k) for k < count, by a warp; s > 0. A weight of 0 is nobody: so are those
/// of `first` that nobody is left for.
template <class RunnerOf>
__device__ void race_by_warp(std::int64_t count, std::int64_t s, const RunnerOf& runner_of, Runner* first) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  std::int64_t arrived = 0;
  for (std::int64_t begin = 0; begin < count; begin += kWarp) {
    Runner mine = {};
    if (begin + lane < count) mine = runner_of(begin + lane);
    const bool enters = mine.weight > 0 && (arrived < s || is_ahead(mine, first[s - 1]));
    for (auto entering = __ballot_sync(kAllLanes, enters); entering != 0; entering &= entering - 1)
      admit_by_warp(runner_of_lane(mine, __popc(~entering & (entering - 1))), s, first, arrived);
  }
  for (auto k = arrived + lane; k < s; k += kWarp) first[k] = {};
  __syncwarp();
}

/// The first picks_of(row) > 0 of size_of(row) entries of each row, as they arrive, at offsets[row]
/// of [total]. runner_of(row, position): an entry, weight 0 if it takes no part. The host waits
/// twice. 24 bytes for each pick, and as many for each of a piece where a row has several.
template <class Size, class Picks, class RunnerOf>
DeviceArray<Runner> race_of_rows(const Cuda& cuda, std::int64_t rows, const Size& size_of,
                                 const Picks& picks_of, const RunnerOf& runner_of,
                                 const std::int64_t* offsets, std::int64_t total) {
  const auto kept_of = [=] __device__(std::int64_t row) {  // of a piece
    return picks_of(row) < kRacePiece ? picks_of(row) : kRacePiece;
  };
  DeviceArray<std::int64_t> counts(rows), pieces(rows + 1), lists(rows + 1);
  auto* to = counts.data();
  for_each(cuda, "pieces_of_rows", rows, [=] __device__(std::int64_t row) {
    to[row] = picks_of(row) > 0 ? (size_of(row) + kRacePiece - 1) / kRacePiece : 0;
  });
  exclusive_sum(cuda, counts.data(), pieces.data(), rows);
  const auto* of_row = pieces.data();
  for_each(cuda, "lists_of_rows", rows, [=] __device__(std::int64_t row) {
    const auto count = of_row[row + 1] - of_row[row];
    to[row] = count > 1 ? count * kept_of(row) : 0;
  });
  exclusive_sum(cuda, counts.data(), lists.data(), rows);
  const auto piece_count = download(cuda, pieces.data() + rows, 1)[0];
  DeviceArray<Runner> of_pieces(download(cuda, lists.data() + rows, 1)[0]), winners(total);
  const auto* list = lists.data();
  auto* from = of_pieces.data();
  auto* first = winners.data();
  for_each_entry_by_warp(
      cuda, "race_of_pieces", of_row, rows, piece_count,
      [=] __device__(std::int64_t piece, std::int64_t row) {
        const auto begin = (piece - of_row[row]) * kRacePiece, left = size_of(row) - begin;
        const bool alone = of_row[row + 1] - of_row[row] == 1;
        race_by_warp(
            left < kRacePiece ? left : kRacePiece, alone ? picks_of(row) : kept_of(row),
            [=](std::int64_t k) { return runner_of(row, begin + k); },
            alone ? first + offsets[row] : from + list[row] + (piece - of_row[row]) * kept_of(row));
      });
  for_each_entry_by_warp(cuda, "merge_pieces", of_row, rows, piece_count,
                         [=] __device__(std::int64_t piece, std::int64_t row) {
                           if (piece > of_row[row] || list[row] == list[row + 1]) return;
                           race_by_warp(
                               list[row + 1] - list[row], picks_of(row),
                               [=](std::int64_t k) { return from[list[row] + k]; }, first + offsets[row]);
                         });
  return winners;
}

}  // namespace espalier
