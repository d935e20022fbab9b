// ranks: 1
// Laws: those of gather_max_cases.hpp, on a GPU.
#include "espalier/dense/gather_max.hpp"

#include "dense/device_matrices.hpp"
#include "dense/gather_max_cases.hpp"

namespace espalier {
namespace {

class GatherMaxCuda : public CudaTest {};

TEST_F(GatherMaxCuda, TakesTheFirstOfTheLargest) {
  check_gather_max(gpu(), [this](const Block& block) { return SharedDeviceBlock(gpu(), block, 77); });
}

}  // namespace
}  // namespace espalier
