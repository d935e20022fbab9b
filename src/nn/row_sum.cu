#include "row_sum.hpp"

#include "device_row_sum.hpp"

namespace espalier {

template <class T>
void sum_rows(const Cuda& cuda, ConstMatrixView<T, Cuda> dz, Matrix<T, Cuda>& sum) {
  T* const out = sum.data.data();
  sum_over_rows(
      cuda, dz.rows, dz.columns,
      [=] __device__(std::int64_t i, std::int64_t j) { return static_cast<double>(dz(i, j)); },
      [=] __device__(std::int64_t j, double of_column) { out[j] = static_cast<T>(of_column); });
}

template <class T>
void sum_scale_and_shift(const Cuda& cuda, const Matrix<T, Cuda>& normalized, const Matrix<T, Cuda>& dy,
                         Matrix<T, Cuda>& dscale, Matrix<T, Cuda>& dshift) {
  T *const to_scale = dscale.data.data(), *const to_shift = dshift.data.data();
  sum_scale_and_shift(cuda, normalized, dy, [=] __device__(std::int64_t j, const ScaleAndShift& sum) {
    to_scale[j] = static_cast<T>(sum.scale);
    to_shift[j] = static_cast<T>(sum.shift);
  });
}

template void sum_rows<float>(const Cuda&, ConstMatrixView<float, Cuda>, Matrix<float, Cuda>&);
template void sum_scale_and_shift<float>(const Cuda&, const Matrix<float, Cuda>&, const Matrix<float, Cuda>&,
                                         Matrix<float, Cuda>&, Matrix<float, Cuda>&);

}  // namespace espalier
