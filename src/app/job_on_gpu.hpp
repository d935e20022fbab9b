// What `sample` and `train` set up alike on GPUs. Empty in a program without CUDA.
#pragma once

#include "job.hpp"

#ifdef ESPALIER_WITH_CUDA

#include "espalier/base/device_array.hpp"
#include "espalier/base/log.hpp"
#include "espalier/comm/device_communicator.hpp"
#include "espalier/product/device_dist_csr.hpp"
#include "espalier/train/gradient_reduction.hpp"

namespace espalier {

/// A copy of the matrix where kernels read it: in the memory of the GPU, or of the host when it is too large.
template <class Index>
DeviceDistCsr<Index> place_matrix(const Job& job, const DistCsr<Index>& a) {
  const bool fits = topology_on_device(job);
  if (!fits)
    log::info(
        "the graph takes more than half of the GPU beside the rest: kernels read it in the memory of the "
        "host");
  return to_device(*job.device.gpu, a, fits ? Placement::kDevice : Placement::kHost);
}

inline void warn_of_host_sampling(const Job& job) {
  if (job.grid->world().rank() != 0) return;
  log::warning(
      "{} with this topology and schedule is sampled by the CPU, and its minibatches are copied to the GPU",
      job.config.sampler.kind);
}

}  // namespace espalier

#endif
