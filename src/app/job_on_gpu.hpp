// What `sample` and `train` set up alike on GPUs. Empty in a program without CUDA.
#pragma once

#include "job.hpp"

#ifdef ESPALIER_WITH_CUDA

#include "espalier/base/device_array.hpp"
#include "espalier/base/log.hpp"
#include "espalier/comm/device_communicator.hpp"
#include "espalier/product/dist_csr.hpp"
#include "espalier/train/gradient_reduction.hpp"

namespace espalier {

/// A copy of the matrix where kernels read it: in the memory of the GPU, or of the host when it is
/// too large.
template <class Index>
DistCsr<Index, Cuda> place_matrix(const Job& job, const DeviceGrid& grid, const DistCsr<Index>& a) {
  const bool fits = topology_on_device(job);
  if (!fits)
    log::info(
        "the graph takes more than half of the GPU beside the rest: kernels read it in the memory of the "
        "host");
  return to_device(*job.device.gpu, grid, a, fits ? Placement::kDevice : Placement::kHost);
}

}  // namespace espalier

#endif
