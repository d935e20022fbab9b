// How a kernel goes through the entries of stacked rows, short or long. For .cu files only.
//
// A block takes a tile of entries; its first and last row are found by binary search in all
// offsets, the row of an entry between those two. So a hub's entries are spread over many blocks,
// and a thousand short rows share one.
#pragma once

#include <cstdint>

#include "espalier/base/launch.hpp"

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

}  // namespace espalier
