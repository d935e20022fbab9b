// How a kernel goes through the entries of stacked rows, short or long. For .cu files only.
//
// A block takes a tile of entries; its first and last row are found by binary search in all
// offsets, the row of an entry between those two. So a hub's entries are spread over many blocks,
// and a thousand short rows share one.
#pragma once

#include <algorithm>
#include <cstdint>

#include "espalier/base/launch.hpp"
#include "espalier/base/shared_list.hpp"

namespace espalier {

/// The row of first .. last with offsets[row] <= at < offsets[row + 1].
__device__ inline std::int64_t row_of_entry(const std::int64_t* offsets, std::int64_t first,
                                            std::int64_t last, std::int64_t at) {
  while (first < last) {
    const auto middle = first + (last - first + 1) / 2;
    if (offsets[middle] <= at)
      first = middle;
    else
      last = middle - 1;
  }
  return first;
}

/// One entry: its place in the arrays of all rows, and its row.
struct EntryOfRow {
  std::int64_t at, row;
};

template <class Function>
__global__ void __launch_bounds__(kBlockThreads)
    for_each_entry_kernel(const std::int64_t* offsets, std::int64_t rows, std::int64_t first,
                          std::int64_t entries, std::int64_t tile, int lanes, Function function) {
  __shared__ std::int64_t ends[2];
  const auto begin = static_cast<std::int64_t>(blockIdx.x) * tile,
             end = begin + tile < entries ? begin + tile : entries;
  if (threadIdx.x < 2)
    ends[threadIdx.x] = row_of_entry(offsets, 0, rows - 1, first + (threadIdx.x == 0 ? begin : end - 1));
  __syncthreads();
  // `lanes` neighbouring threads share an entry.
  const auto step = static_cast<std::int64_t>(blockDim.x) / lanes;
  for (auto k = begin + static_cast<std::int64_t>(threadIdx.x) / lanes; k < end; k += step)
    function(first + k, row_of_entry(offsets, ends[0], ends[1], first + k));
}

/// function(at, row) for every `at` in first .. first + entries, each by a thread of its own;
/// offsets [rows + 1] in device memory, offsets[row] <= at < offsets[row + 1].
template <class Function>
void for_each_entry(const Cuda& cuda, const char* name, const std::int64_t* offsets, std::int64_t rows,
                    std::int64_t first, std::int64_t entries, const Function& function) {
  constexpr std::int64_t kTile = 8 * kBlockThreads;
  launch(cuda, name, for_each_entry_kernel<Function>, dim3(blocks_for(entries, kTile)), dim3(kBlockThreads),
         offsets, rows, first, entries, kTile, 1, function);
}

/// The same by a whole warp for each entry.
template <class Function>
void for_each_entry_by_warp(const Cuda& cuda, const char* name, const std::int64_t* offsets,
                            std::int64_t rows, std::int64_t entries, const Function& function) {
  constexpr std::int64_t kTile = 64 * kBlockThreads / kWarp;
  launch(cuda, name, for_each_entry_kernel<Function>, dim3(blocks_for(entries, kTile)), dim3(kBlockThreads),
         offsets, rows, std::int64_t{0}, entries, kTile, kWarp, function);
}

// How a kernel goes through what lies batch by batch in one array. For .cu files only.

/// A range of batches.
struct BatchRange {
  std::int64_t first = 0, last = 0;
  std::int64_t count() const { return last - first; }
};

template <class Function>
__global__ void __launch_bounds__(kBlockThreads)
    for_each_in_batches_kernel(const std::int64_t* offsets, std::int64_t first_batch, Function function) {
  const auto batch = first_batch + blockIdx.y;
  const auto end = offsets[batch + 1], step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (auto i = offsets[batch] + static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < end;
       i += step)
    function(batch, i);
}

/// function(batch, i) for every i in offsets[batch] .. offsets[batch + 1] of the batches of
/// `range`, each by a thread of its own.
template <class Function>
void for_each_in_batches(const Cuda& cuda, const char* name, BatchRange range,
                         const SharedList<std::int64_t, Cuda>& offsets, const Function& function) {
  constexpr std::int64_t kBatchesAtOnce = 65535;
  for (auto first = range.first; first < range.last; first += kBatchesAtOnce) {
    const auto last = std::min(range.last, first + kBatchesAtOnce);
    std::int64_t most = 0;
    for (auto batch = first; batch < last; ++batch)
      most = std::max(most, offsets[batch + 1] - offsets[batch]);
    // Blocks enough for every batch, but one that is much larger than the others goes round.
    const auto mean = (offsets[last] - offsets[first]) / (last - first);
    const auto columns = std::min<std::int64_t>(blocks_for(most), 4 * (mean / kBlockThreads) + 64);
    launch(cuda, name, for_each_in_batches_kernel<Function>,
           dim3(static_cast<unsigned>(columns), static_cast<unsigned>(last - first)), dim3(kBlockThreads),
           offsets.data(), first, function);
  }
}

}  // namespace espalier
