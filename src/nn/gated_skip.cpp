#include "gated_skip.hpp"

#include <array>

#include "espalier/dense/column_sums.hpp"

namespace espalier {

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
