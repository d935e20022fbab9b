// ranks: 1
// Law: row_form_cases.hpp, on a GPU, from its memory and from pinned memory of the host.
#include "cuda_test.hpp"
#include "feature/row_form_cases.hpp"

namespace espalier {
namespace {

class RowFormCuda : public CudaTest {};

TEST_F(RowFormCuda, NumbersAreThoseThatWereWritten) {
  check_all_numbers(gpu(), Placement::kDevice);
  check_all_numbers(gpu(), Placement::kHost);
}

}  // namespace
}  // namespace espalier
