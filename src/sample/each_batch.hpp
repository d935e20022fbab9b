// How a kernel goes through what lies batch by batch in one array. For .cu files only.
#pragma once

#include <algorithm>
#include <cstdint>

#include "espalier/base/launch.hpp"
#include "espalier/base/shared_list.hpp"

namespace espalier {

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
  constexpr std::int64_t kMostBatches = 65535;
  for (auto first = range.first; first < range.last; first += kMostBatches) {
    const auto last = std::min(range.last, first + kMostBatches);
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
