// ranks: 1 2 3
// Law: on GPUs too, drawing only what is needed is pruning the whole sample
// (needed_sample_test.cpp).
#include "history/needed_sample_cases.hpp"

#include "comm/device_transports.hpp"
#include "cuda_test.hpp"
#include "espalier/comm/device_communicator.hpp"

namespace espalier {
namespace {

class NeededSampleOnGpus : public CudaTest {};

TEST_F(NeededSampleOnGpus, IsThePrunedSample) {
  for (const int c : divisors(test_world().size())) {
    const Grid grid(test_world(), c);
    const DeviceGrid device_grid(own_gpu(), grid);
    for (const auto& job : needed_jobs()) {
      SCOPED_TRACE(fmt::format("{} typed {} c {}", job.sampler, job.typed, c));
      const auto a = needed_matrix<std::int32_t>(
          grid, job, ownership_of(kAllOwned[c % 2], kNeededVertices, grid.rows()));
      const auto copy = to_device(own_gpu(), device_grid, a);
      const auto sampler = make_sampler(own_gpu(), job.sampler, copy, job.shape);
      expect_needed_is_pruned(own_gpu(), *sampler, job.shape.fanout.size());
    }
  }
}

}  // namespace
}  // namespace espalier
