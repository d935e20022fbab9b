// The samplers that run on a GPU. A new one is a make_NAME here and in a .cu file of its own, and a line in
// sampler_table.cu.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "espalier/sample/sampler.hpp"

namespace espalier {

/// Does the product of a run on GPUs by these schedules: are all rows local, or is each schedule pull or push?
template <class Index>
bool has_device_product(const DistCsr<Index>& a, const std::vector<Schedule>& schedules) {
  return a.partition.parts() == 1 || std::ranges::all_of(schedules, [](Schedule schedule) {
           return schedule == Schedule::kPull || schedule == Schedule::kPush;
         });
}

/// The twin of `on_host`, the CPU's sampler of the same matrix and shape, whose schedules it takes. Null when it
/// cannot run on the GPU for this topology. Collective over the grid; so is the answer.
template <class Index>
std::unique_ptr<DeviceSampler> make_graphsage(const Cuda& cuda, const DeviceGrid& grid,
                                              const DeviceDistCsr<Index>& a, const SamplerShape& shape,
                                              const Sampler& on_host);
template <class Index>
std::unique_ptr<DeviceSampler> make_labor(const Cuda& cuda, const DeviceGrid& grid,
                                          const DeviceDistCsr<Index>& a, const SamplerShape& shape,
                                          const Sampler& on_host);

}  // namespace espalier
