#include "espalier/nn/own_rows.hpp"

#include <array>

#include "espalier/dense/column_sums.hpp"

namespace espalier {

template <class T>
void add_own_rows(const Cpu& cpu, const Matrix<T>& eps, ConstMatrixView<T> x, MatrixView<T> y) {
  const T factor = T{1} + eps.data[0];
  const std::int64_t size = y.rows * y.columns;
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (size > 16384)
  for (std::int64_t e = 0; e < size; ++e) y.data[e] += factor * x.data[e];
}

template <class T>
void product_of_own_rows(const Cpu& cpu, ConstMatrixView<T> x, ConstMatrixView<T> y, Matrix<T>& sum) {
  double total = 0;
  sum_over_rows(cpu, x.rows, std::span<double>(&total, 1), [&](std::int64_t i, double* to) {
    for (std::int64_t j = 0; j < x.columns; ++j)
      *to += static_cast<double>(x(i, j)) * static_cast<double>(y(i, j));
  });
  sum.data[0] = static_cast<T>(total);
}

template <class T>
void scale_drawn_rows(const Cpu& cpu, const std::uint8_t* drawn, const std::int64_t* positions, double weight,
                      MatrixView<T> rows) {
  const auto factor = static_cast<T>(weight);
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (rows.rows > 256)
  for (std::int64_t k = 0; k < rows.rows; ++k)
    if (drawn[positions[k]] != 0)
      for (std::int64_t j = 0; j < rows.columns; ++j) rows(k, j) *= factor;
}

#define ESPALIER_INSTANTIATE(T)                                                                   \
  template void scale_drawn_rows<T>(const Cpu&, const std::uint8_t*, const std::int64_t*, double, \
                                    MatrixView<T>);                                               \
  template void add_own_rows<T>(const Cpu&, const Matrix<T>&, ConstMatrixView<T>, MatrixView<T>); \
  template void product_of_own_rows<T>(const Cpu&, ConstMatrixView<T>, ConstMatrixView<T>, Matrix<T>&);
ESPALIER_INSTANTIATE(float)
ESPALIER_INSTANTIATE(double)
#undef ESPALIER_INSTANTIATE

template <class T>
void add_mixed_rows(const Cpu& cpu, const Matrix<T>& skip, std::int64_t gate, ConstMatrixView<T> x,
                    ConstMatrixView<T> y, MatrixView<T> z) {
  const T g = gate_of(skip(gate, 0));
  const auto size = z.rows * z.columns;
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (size > 65536)
  for (std::int64_t e = 0; e < size; ++e) z.data[e] += g * y.data[e] + (T{1} - g) * x.data[e];
}

template <class T>
void mixed_rows_backward(const Cpu& cpu, const Matrix<T>& skip, std::int64_t gate, ConstMatrixView<T> x,
                         ConstMatrixView<T> y, ConstMatrixView<T> dz, MatrixView<T> dy, Matrix<T>& dskip) {
  const T g = gate_of(skip(gate, 0));
  std::array<double, 1> by_gate;
  sum_over_rows(cpu, dz.rows, by_gate, [&](std::int64_t i, double* sum) {
    for (std::int64_t c = 0; c < dz.columns; ++c) {
      *sum += static_cast<double>(y(i, c) - x(i, c)) * static_cast<double>(dz(i, c));
      dy(i, c) = g * dz(i, c);
    }
  });
  dskip(gate, 0) += static_cast<T>(by_gate[0] * static_cast<double>(g * (T{1} - g)));
}

template <class T>
void add_past_gate(const Cpu& cpu, const Matrix<T>& skip, std::int64_t gate, ConstMatrixView<T> dz,
                   MatrixView<T> dx) {
  const T past = T{1} - gate_of(skip(gate, 0));
  const auto size = dz.rows * dz.columns;
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (size > 65536)
  for (std::int64_t e = 0; e < size; ++e) dx.data[e] += past * dz.data[e];
}

ESPALIER_INSTANTIATE_GATED_SKIP(float, Cpu)
ESPALIER_INSTANTIATE_GATED_SKIP(double, Cpu)

}  // namespace espalier
