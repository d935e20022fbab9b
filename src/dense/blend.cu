#include "espalier/base/error.hpp"
#include "espalier/base/launch.hpp"
#include "espalier/dense/blend.hpp"
#include "espalier/dense/device_matrix.hpp"

namespace espalier {

template <class T>
void blend(const Cuda& cuda, double share, const Matrix<T, Cuda>& from, Matrix<T, Cuda>& to) {
  ESPALIER_CHECK(from.data.size() == to.data.size(), "{} elements and {}", from.data.size(), to.data.size());
  const T* const source = from.data.data();
  T* const target = to.data.data();
  for_each(cuda, "blend", static_cast<std::int64_t>(to.data.size()),
           [=] __device__(std::int64_t k) { target[k] = blended(share, source[k], target[k]); });
}

template void blend(const Cuda&, double, const Matrix<float, Cuda>&, Matrix<float, Cuda>&);

}  // namespace espalier
