#include "row_sum.hpp"

#include "device_row_sum.hpp"

namespace espalier {

template <class T>
void sum_rows(const Cuda& cuda, const Matrix<T, Cuda>& dz, Matrix<T, Cuda>& sum) {
  const T* const in = dz.data.data();
  T* const out = sum.data.data();
  const std::int64_t width = dz.columns;
  sum_over_rows(
      cuda, dz.rows, width,
      [=] __device__(std::int64_t i, std::int64_t j) { return static_cast<double>(in[i * width + j]); },
      [=] __device__(std::int64_t j, double of_column) { out[j] = static_cast<T>(of_column); });
}

template <class T>
void sum_scale_and_shift(const Cuda& cuda, const Matrix<T, Cuda>& normalized, const Matrix<T, Cuda>& dy,
                         Matrix<T, Cuda>& dscale, Matrix<T, Cuda>& dshift) {
  T *const to_scale = dscale.data.data(), *const to_shift = dshift.data.data();
  const std::int64_t width = dy.columns;
  sum_scale_and_shift(cuda, normalized, dy, [=] __device__(std::int64_t j, double sum) {
    if (j < width)
      to_scale[j] = static_cast<T>(sum);
    else
      to_shift[j - width] = static_cast<T>(sum);
  });
}

template void sum_rows<float>(const Cuda&, const Matrix<float, Cuda>&, Matrix<float, Cuda>&);
template void sum_scale_and_shift<float>(const Cuda&, const Matrix<float, Cuda>&, const Matrix<float, Cuda>&,
                                         Matrix<float, Cuda>&, Matrix<float, Cuda>&);

}  // namespace espalier
