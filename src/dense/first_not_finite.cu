// A GPU looks at all numbers, and takes the least place.
#include "espalier/dense/first_not_finite.hpp"

#include "espalier/base/device_array.hpp"
#include "espalier/base/launch.hpp"

namespace espalier {

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
