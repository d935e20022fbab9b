#include "espalier/nn/own_rows.hpp"

#include "espalier/base/device_array.hpp"
#include "espalier/base/launch.hpp"
#include "espalier/dense/device_column_sums.hpp"

namespace espalier {

template <class T>
void add_own_rows(const Cuda& cuda, const Matrix<T, Cuda>& eps, ConstMatrixView<T, Cuda> x,
                  MatrixView<T, Cuda> y) {
  const T* const factor = eps.data.data();
  for_each(cuda, "add_own_rows", y.rows * y.columns,
           [=] __device__(std::int64_t e) { y.data[e] += (T{1} + *factor) * x.data[e]; });
}

// Column by column, then over the columns: another order than the CPU's.
template <class T>
void product_of_own_rows(const Cuda& cuda, ConstMatrixView<T, Cuda> x, ConstMatrixView<T, Cuda> y,
                         Matrix<T, Cuda>& sum) {
  DeviceArray<double> columns(x.columns);
  double* const of_column = columns.data();
  T* const out = sum.data.data();
  const std::int64_t width = x.columns;
  sum_over_rows(
      cuda, x.rows, width,
      [=] __device__(std::int64_t i, std::int64_t j) {
        return static_cast<double>(x(i, j)) * static_cast<double>(y(i, j));
      },
      [=] __device__(std::int64_t j, double of_one) { of_column[j] = of_one; });
  for_each(cuda, "product_of_own_rows", 1, [=] __device__(std::int64_t) {
    double total = 0;
    for (std::int64_t j = 0; j < width; ++j) total += of_column[j];
    *out = static_cast<T>(total);
  });
}

template <class T>
void scale_drawn_rows(const Cuda& cuda, const std::uint8_t* drawn, const std::int64_t* positions,
                      double weight, MatrixView<T, Cuda> rows) {
  const auto factor = static_cast<T>(weight);
  for_each_in_rows(cuda, "scale_drawn_rows", rows.rows, rows.columns,
                   [=] __device__(std::int64_t k, std::int64_t j) {
                     if (drawn[positions[k]] != 0) rows(k, j) *= factor;
                   });
}

template void scale_drawn_rows<float>(const Cuda&, const std::uint8_t*, const std::int64_t*, double,
                                      MatrixView<float, Cuda>);
template void add_own_rows<float>(const Cuda&, const Matrix<float, Cuda>&, ConstMatrixView<float, Cuda>,
                                  MatrixView<float, Cuda>);
template void product_of_own_rows<float>(const Cuda&, ConstMatrixView<float, Cuda>,
                                         ConstMatrixView<float, Cuda>, Matrix<float, Cuda>&);

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
