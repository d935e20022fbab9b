// ranks: 1
// Law: that of first_not_finite_cases.hpp, on a GPU.
#include "dense/device_matrices.hpp"
#include "dense/first_not_finite_cases.hpp"
#include "espalier/base/arrays.hpp"

namespace espalier {
namespace {

class FirstNotFiniteCuda : public CudaTest {};

TEST_F(FirstNotFiniteCuda, IsFoundWhereverItStands) {
  check_first_not_finite([this](const Buffer<float>& values) {
    const auto on_gpu = copy_to(gpu(), std::span<const float>(values));
    return first_not_finite(gpu(), on_gpu.data(), std::ssize(values));
  });
}

}  // namespace
}  // namespace espalier
