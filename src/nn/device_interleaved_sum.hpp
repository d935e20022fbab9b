// Sums of a warp's lanes; the CUDA implementation of interleaved_sum.hpp: the same bits by a warp.
// For .cu files only.
#pragma once

#include <cstdint>

#include "espalier/base/launch.hpp"
#include "interleaved_sum.hpp"

namespace espalier {

/// In every lane, what `combine` makes of all lanes' values.
template <class T, class Combine>
__device__ T over_warp(T value, const Combine& combine) {
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2)
    value = combine(value, __shfl_xor_sync(kAllLanes, value, lanes));
  return value;
}

/// term(0) + .. + term(count - 1), in every lane of a warp that calls this together.
template <class Term>
__device__ double sum_by_warp(std::int64_t count, const Term& term) {
  static_assert(kInterleavedSums == kWarp);
  double sum = 0;
  for (std::int64_t k = threadIdx.x % kWarp; k < count; k += kWarp) sum += term(k);
  return over_warp(sum, [](double a, double b) { return a + b; });
}

}  // namespace espalier
