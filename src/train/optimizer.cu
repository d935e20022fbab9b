// All tensors are updated by one kernel: blocks of one row of the grid have one tensor.
#include <algorithm>

#include "espalier/base/device_array.hpp"
#include "espalier/base/launch.hpp"
#include "optimizer.inl.hpp"

namespace espalier {
namespace {

constexpr std::size_t kTensorsOfLaunch = 32;

template <class T, class Step>
struct Updates {
  TensorUpdate<T, Step> tensors[kTensorsOfLaunch];
};

template <class T, class Step>
__global__ void __launch_bounds__(kBlockThreads) update_kernel(Updates<T, Step> updates) {
  const auto& tensor = updates.tensors[blockIdx.y];
  const auto e = static_cast<std::int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x;
  if (e < tensor.size) update(tensor, e);
}

}  // namespace

template <class T, class Step>
void update_tensors(const Cuda& cuda, std::span<const TensorUpdate<T, Step>> updates) {
  for (std::size_t begin = 0; begin < updates.size(); begin += kTensorsOfLaunch) {
    const auto some = updates.subspan(begin, std::min(kTensorsOfLaunch, updates.size() - begin));
    Updates<T, Step> list;
    std::int64_t largest = 0;
    for (std::size_t k = 0; k < some.size(); ++k) {
      list.tensors[k] = some[k];
      largest = std::max(largest, some[k].size);
    }
    launch(cuda, "optimizer", update_kernel<T, Step>,
           dim3(blocks_for(largest), static_cast<unsigned>(some.size())), dim3(kBlockThreads), list);
  }
}

template class Optimizer<float, Cuda>;

}  // namespace espalier
