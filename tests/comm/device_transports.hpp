// What distributed tests of the GPU share: a GPU for each rank, and the ways to exchange that can
// be tested with it. In the emulated build there are eight GPUs unless ESPALIER_EMULATED_GPUS says
// otherwise.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
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

/// A grid by either transport: without NCCL each rank says that it may not be used.
inline DeviceGrid device_grid(const Grid& grid, bool by_nccl) {
  setenv("ESPALIER_NO_NCCL", by_nccl ? "0" : "1", 1);
  DeviceGrid device(own_gpu(), grid);
  unsetenv("ESPALIER_NO_NCCL");
  return device;
}

/// Calls work(grid, device grid, by_nccl) for every one of these transports and grid of all ranks.
template <class Work>
void for_every_device_grid(const std::vector<bool>& ways, const Work& work) {
  for (const bool by_nccl : ways)
    for (const int c : divisors(test_world().size())) {
      const Grid grid(test_world(), c);
      const auto device = device_grid(grid, by_nccl);
      work(grid, device, by_nccl);
    }
}

using Ledger = std::map<std::string, Volume, std::less<>>;

/// Every label has the same messages, bytes and predictions.
inline void expect_same_traffic(const Ledger& device, const Ledger& host) {
  EXPECT_EQ(device.size(), host.size()) << "labels";
  for (const auto& [label, expected] : host) {
    const auto found = device.find(label);
    const auto booked = found == device.end() ? Volume{} : found->second;
    EXPECT_EQ(booked.messages, expected.messages) << label;
    EXPECT_EQ(booked.rounds, expected.rounds) << label;
    EXPECT_EQ(booked.bytes_sent, expected.bytes_sent) << label;
    EXPECT_EQ(booked.bytes_received, expected.bytes_received) << label;
    EXPECT_EQ(booked.predicted_messages, expected.predicted_messages) << label;
    EXPECT_EQ(booked.predicted_bytes, expected.predicted_bytes) << label;
  }
}

}  // namespace espalier
