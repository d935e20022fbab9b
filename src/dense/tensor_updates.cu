#include "tensor_updates.both.cu"

#include "espalier/base/device_array.hpp"
#include "espalier/base/launch.hpp"
#include "espalier/dense/tensor_updates.hpp"

namespace espalier {

template void clip_to_norm(const Cuda&, double, std::vector<Matrix<float, Cuda>>&, Array<Cuda, double>&);
template void blend(const Cuda&, double, const Matrix<float, Cuda>&, Matrix<float, Cuda>&);
template void weigh(const Cuda&, double, const Matrix<float, Cuda>&, Matrix<float, Cuda>&,
                    Matrix<float, Cuda>&, std::int64_t);
template void blend_mean(const Cuda&, double, const Matrix<float, Cuda>&, const Matrix<float, Cuda>&,
                         std::int64_t, Matrix<float, Cuda>&);

std::int64_t first_not_finite(const Cuda& cuda, const float* values, std::int64_t size) {
  if (size == 0) return -1;
  // How many numbers the first bad one has from itself on.
  DeviceArray<unsigned long long> behind(1);
  fill_zero(cuda, behind);
  auto* const most = behind.data();
  for_each(cuda, "first_not_finite", size, [=] __device__(std::int64_t k) {
    if ((__float_as_uint(values[k]) & 0x7fffffffu) >= kInfinityBits)
      atomicMax(most, static_cast<unsigned long long>(size - k));
  });
  const auto found = static_cast<std::int64_t>(download(cuda, behind)[0]);
  return found == 0 ? -1 : size - found;
}

}  // namespace espalier
