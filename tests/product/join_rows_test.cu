// ranks: 1
// Law: join_rows_cases.hpp, on a GPU.
#include "cuda_test.hpp"
#include "product/join_rows_cases.hpp"

namespace espalier {
namespace {

class JoinRowsCuda : public CudaTest {};

TEST_F(JoinRowsCuda, PiecesAreTheRow) {
  check_joined_rows(gpu());
}

}  // namespace
}  // namespace espalier
