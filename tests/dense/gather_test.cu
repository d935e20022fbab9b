// ranks: 1
// Law: gather_cases.hpp, on a GPU, from its memory and from pinned memory of the host.
#include "cuda_test.hpp"
#include "dense/gather_cases.hpp"

namespace espalier {
namespace {

class GatherCuda : public CudaTest {};

TEST_F(GatherCuda, RowsAreThoseThatAreNamed) {
  for (const auto placement : {Placement::kDevice, Placement::kHost}) {
    check_gather<float>(gpu(), placement, unchanged<float>);
    check_gather<Half>(gpu(), placement, to_half);
    check_gather<BFloat16>(gpu(), placement, to_bfloat16);
  }
}

}  // namespace
}  // namespace espalier
