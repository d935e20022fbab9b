// ranks: 1
// Law: quantised_rows_cases.hpp, on a GPU, from its memory and from pinned memory of the host.
#include "cuda_test.hpp"
#include "feature/quantised_rows_cases.hpp"

namespace espalier {
namespace {

class QuantisedRowsCuda : public CudaTest {};

TEST_F(QuantisedRowsCuda, NumbersAreThoseOfTheirCodes) {
  for (const auto placement : {Placement::kDevice, Placement::kHost}) check_unpack(gpu(), placement);
}

}  // namespace
}  // namespace espalier
