// Law: the thread that samples ahead works on the GPU that the job took, whatever its number.
// ranks: 1
#include <cuda_runtime.h>

#include <cstdlib>
#include <numeric>

#include "cuda_test.hpp"
#include "espalier/base/launch.hpp"
#include "espalier/sample/epoch_sampler.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

// Before the first call of CUDA.
const int emulated_gpus = setenv("ESPALIER_EMULATED_GPUS", "2", 0);

// Launches a kernel and says where; returns minibatches without layers.
class LaunchingSampler : public SamplerOn<Cuda> {
 public:
  const std::vector<Schedule>& schedules() const override { return schedules_; }
  std::vector<MinibatchOn<Cuda>> sample(const Cuda& cuda, std::span<const SeedBatch> batches, std::uint64_t,
                                        std::uint64_t) override {
    int device = -1;
    EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
    devices.push_back(device);
    for_each(cuda, "sample", 1, [] __device__(std::int64_t) {});
    std::vector<MinibatchOn<Cuda>> minibatches;
    for (const auto& batch : batches) minibatches.push_back({batch.number, {}, {}, nullptr});
    return minibatches;
  }
  std::vector<int> devices;

 private:
  std::vector<Schedule> schedules_;
};

TEST(EpochSamplerOnGpu, ItsThreadUsesTheGpuOfTheJob) {
  if (count_gpus() < 2) GTEST_SKIP() << "no second GPU";
  const Cuda second(1);
  const Grid grid(test_world(), 1);
  Buffer<std::int64_t> training(9);
  std::iota(training.begin(), training.end(), 0);
  const EpochPlan plan(training, 3, 1, grid.ranks(), 7, 3);
  SampleAhead ahead{test_world()};
  LaunchingSampler launching;
  EpochSamplerOn<Cuda> sampler(grid, launching, plan, 1, &ahead);
  sampler.sample_until(second, 3);
  EXPECT_EQ(launching.devices, (std::vector<int>{1, 1, 1}));
  EXPECT_EQ(sampler.take(0, 3).size(), 3u);
}

}  // namespace
}  // namespace espalier
