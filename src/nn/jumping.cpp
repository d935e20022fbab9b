#include "espalier/nn/jumping.hpp"

#include <algorithm>

namespace espalier {

template <class T>
void place_columns(const Cpu& cpu, ConstMatrixView<T> h, std::int64_t at, MatrixView<T> j) {
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (j.rows > 1024)
  for (std::int64_t i = 0; i < j.rows; ++i) std::copy_n(h.row(i), h.columns, j.row(i) + at);
}

template <class T>
void add_columns(const Cpu& cpu, ConstMatrixView<T> dj, std::int64_t at, MatrixView<T> gradient) {
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (dj.rows > 1024)
  for (std::int64_t i = 0; i < dj.rows; ++i)
    for (std::int64_t f = 0; f < gradient.columns; ++f) gradient(i, f) += dj(i, at + f);
}

template <class T>
void take_larger(const Cpu& cpu, ConstMatrixView<T> h, int number, MatrixView<T> j,
                 Buffer<std::int32_t>& winners) {
  const std::int64_t size = j.rows * j.columns;
  winners.resize(size);
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (size > 16384)
  for (std::int64_t e = 0; e < size; ++e) {
    if (number > 1 && (h.data[e] <= j.data[e] || j.data[e] != j.data[e])) continue;
    j.data[e] = h.data[e];
    winners[e] = number;
  }
}

template <class T>
void add_where_larger(const Cpu& cpu, ConstMatrixView<T> dj, int number, const Buffer<std::int32_t>& winners,
                      MatrixView<T> gradient) {
  const std::int64_t size = dj.rows * dj.columns;
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (size > 16384)
  for (std::int64_t e = 0; e < size; ++e)
    if (winners[e] == number) gradient.data[e] += dj.data[e];
}

#define ESPALIER_INSTANTIATE(T)                                                                            \
  template void place_columns<T>(const Cpu&, ConstMatrixView<T>, std::int64_t, MatrixView<T>);             \
  template void add_columns<T>(const Cpu&, ConstMatrixView<T>, std::int64_t, MatrixView<T>);               \
  template void take_larger<T>(const Cpu&, ConstMatrixView<T>, int, MatrixView<T>, Buffer<std::int32_t>&); \
  template void add_where_larger<T>(const Cpu&, ConstMatrixView<T>, int, const Buffer<std::int32_t>&,      \
                                    MatrixView<T>);
ESPALIER_INSTANTIATE(float)
ESPALIER_INSTANTIATE(double)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
