// Binary search by one thread of a kernel. For .cu files only.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace espalier {

/// How many of the ascending values sorted[0 .. count) are less than `bound`.
template <class T>
__device__ inline std::int64_t count_below(const T* sorted, std::int64_t count, T bound) {
  std::int64_t begin = 0;
  while (count > 0) {
    const std::int64_t half = count / 2;
    const bool below = sorted[begin + half] < bound;
    begin = below ? begin + half + 1 : begin;
    count = below ? count - half - 1 : half;
  }
  return begin;
}

/// The segment that `item` is in: segment s has the items offsets[s] .. offsets[s+1], offsets[0] <= item; empty ones are
/// passed over. offsets [segments + 1], ascending.
__device__ inline std::int64_t segment_of(const std::int64_t* offsets, std::int64_t segments,
                                          std::int64_t item) {
  return count_below(offsets + 1, segments, item + 1);
}

}  // namespace espalier
