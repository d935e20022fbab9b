// Adds up the losses of a batch on a GPU. For .cu files only.
#pragma once

#include <cstdint>

#include "espalier/base/launch.hpp"

namespace espalier {

/// In every lane, what `combine` makes of all lanes' values.
template <class T, class Combine>
__device__ T over_warp(T value, const Combine& combine) {
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2)
    value = combine(value, __shfl_xor_sync(kAllLanes, value, lanes));
  return value;
}

/// *total = the sum of `count` numbers, by one block: each thread adds every 256th, then pairs of
/// threads theirs, so the order depends on `count` only. Both are device memory.
void add_losses(const Cuda& cuda, const double* losses, std::int64_t count, double* total);

}  // namespace espalier
