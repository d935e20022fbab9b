#include "gated_skip.hpp"

#include "espalier/base/device_array.hpp"
#include "espalier/base/launch.hpp"
#include "espalier/dense/device_column_sums.hpp"

namespace espalier {

template <class T>
void add_mixed_rows(const Cuda& cuda, const Matrix<T, Cuda>& skip, std::int64_t gate,
                    ConstMatrixView<T, Cuda> x, ConstMatrixView<T, Cuda> y, MatrixView<T, Cuda> z) {
  const T* const s = skip.row(gate);
  for_each(cuda, "add_mixed_rows", z.rows * z.columns, [=] __device__(std::int64_t e) {
    const T g = gate_of(*s);
    z.data[e] += g * y.data[e] + (T{1} - g) * x.data[e];
  });
}

// Column by column, then over the columns.
template <class T>
void mixed_rows_backward(const Cuda& cuda, const Matrix<T, Cuda>& skip, std::int64_t gate,
                         ConstMatrixView<T, Cuda> x, ConstMatrixView<T, Cuda> y, ConstMatrixView<T, Cuda> dz,
                         MatrixView<T, Cuda> dy, Matrix<T, Cuda>& dskip) {
  const T* const s = skip.row(gate);
  for_each(cuda, "mixed_rows_backward", dz.rows * dz.columns,
           [=] __device__(std::int64_t e) { dy.data[e] = gate_of(*s) * dz.data[e]; });
  const std::int64_t width = dz.columns;
  DeviceArray<double> columns(static_cast<std::size_t>(width));
  double* const of_column = columns.data();
  sum_over_rows(
      cuda, dz.rows, width,
      [=] __device__(std::int64_t i, std::int64_t c) {
        return static_cast<double>(y(i, c) - x(i, c)) * static_cast<double>(dz(i, c));
      },
      [=] __device__(std::int64_t c, double sum) { of_column[c] = sum; });
  T* const to = dskip.row(gate);
  for_each(cuda, "gradient_of_gate", 1, [=] __device__(std::int64_t) {
    const T g = gate_of(*s);
    double total = 0;
    for (std::int64_t c = 0; c < width; ++c) total += of_column[c];
    *to += static_cast<T>(total * static_cast<double>(g * (T{1} - g)));
  });
}

template <class T>
void add_past_gate(const Cuda& cuda, const Matrix<T, Cuda>& skip, std::int64_t gate,
                   ConstMatrixView<T, Cuda> dz, MatrixView<T, Cuda> dx) {
  const T* const s = skip.row(gate);
  for_each(cuda, "add_past_gate", dz.rows * dz.columns,
           [=] __device__(std::int64_t e) { dx.data[e] += (T{1} - gate_of(*s)) * dz.data[e]; });
}

ESPALIER_INSTANTIATE_GATED_SKIP(float, Cuda)

}  // namespace espalier
