#include "gelu.hpp"

#include "espalier/base/device_array.hpp"
#include "espalier/base/launch.hpp"

namespace espalier {

template <class T>
void gelu(const Cuda& cuda, const Matrix<T, Cuda>& x, Matrix<T, Cuda>& y) {
  y.resize(x.rows, x.columns);
  const T* const from = x.data.data();
  T* const to = y.data.data();
  for_each(cuda, "gelu", x.rows * x.columns,
           [=] __device__(std::int64_t e) { to[e] = from[e] * normal_distribution(from[e]); });
}

template <class T>
void gelu_backward(const Cuda& cuda, const Matrix<T, Cuda>& x, Matrix<T, Cuda>& dy) {
  const T* const from = x.data.data();
  T* const to = dy.data.data();
  for_each(cuda, "gelu_backward", x.rows * x.columns, [=] __device__(std::int64_t e) {
    to[e] *= normal_distribution(from[e]) + from[e] * normal_density(from[e]);
  });
}

template void gelu<float>(const Cuda&, const Matrix<float, Cuda>&, Matrix<float, Cuda>&);
template void gelu_backward<float>(const Cuda&, const Matrix<float, Cuda>&, Matrix<float, Cuda>&);

}  // namespace espalier
