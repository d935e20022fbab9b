// What distributed tests of the GPU share: a GPU for each rank, and the ways to exchange that can
// be tested with it. In the emulated build there are eight GPUs unless ESPALIER_EMULATED_GPUS says
// otherwise.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "cuda_test.hpp"
#include "espalier/comm/device_communicator.hpp"
#include "mpi_test.hpp"

namespace espalier {

// Before the first call of CUDA.
inline const int emulated_gpus = setenv("ESPALIER_EMULATED_GPUS", "8", 0);

/// This rank's GPU: its own where there are enough.
inline const Cuda& own_gpu() {
  static const Cuda gpu(gpu_for(place_on_node(test_world())));
  return gpu;
}

/// The values of by_nccl that can be tested.
inline std::vector<bool> transports() {
  std::vector<bool> ways = {false};
  const int share = place_on_node(test_world()).ranks > count_gpus() ? 1 : 0;
  if (test_world().all_reduce(share, Reduction::kMax, "test") == 0) ways.push_back(true);
  return ways;
}

}  // namespace espalier
