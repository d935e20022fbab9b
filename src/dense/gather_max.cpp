#include "espalier/dense/gather_max.hpp"

#include <algorithm>

namespace espalier {

template <class T>
void gather_max(const Cpu& cpu, const BlockView<Cpu>& block, ConstMatrixView<T> x, MatrixView<T> m,
                Buffer<std::int32_t>& winners) {
  winners.resize(m.rows * m.columns);
#pragma omp parallel for num_threads(cpu.threads) schedule(dynamic, 64) if (block.rows > 64)
  for (std::int64_t i = 0; i < block.rows; ++i) {
    T* const most = m.row(i);
    std::int32_t* const winner = winners.data() + i * m.columns;
    std::fill_n(most, m.columns, T{0});
    std::fill_n(winner, m.columns, -1);
    for (std::int64_t e = block.row_begin(i); e < block.row_end(i); ++e) {
      const T* const row = x.row(block.indices[e]);
      const auto entry = static_cast<std::int32_t>(e - block.indptr[0]);
      const bool first = e == block.row_begin(i);
      for (std::int64_t j = 0; j < m.columns; ++j) {
        // Not "row[j] > most[j]": a NaN takes its place and keeps it.
        const bool wins = first || (!(row[j] <= most[j]) && most[j] == most[j]);
        most[j] = wins ? row[j] : most[j];
        winner[j] = wins ? entry : winner[j];
      }
    }
  }
}

template <class T>
void gather_max_backward(const Cpu& cpu, const BlockView<Cpu>& transposed,
                         const Buffer<std::int64_t>& positions, const Buffer<std::int32_t>& winners,
                         ConstMatrixView<T> dm, MatrixView<T> dx) {
#pragma omp parallel for num_threads(cpu.threads) schedule(dynamic, 64) if (transposed.rows > 64)
  for (std::int64_t j = 0; j < transposed.rows; ++j) {
    T* const sum = dx.row(j);
    std::fill_n(sum, dx.columns, T{0});
    for (std::int64_t k = transposed.row_begin(j); k < transposed.row_end(j); ++k) {
      const std::int64_t i = transposed.indices[k];
      const std::int32_t* const winner = winners.data() + i * dx.columns;
      const auto entry = static_cast<std::int32_t>(positions[k]);
      for (std::int64_t f = 0; f < dx.columns; ++f) sum[f] += winner[f] == entry ? dm(i, f) : T{0};
    }
  }
}

#define ESPALIER_INSTANTIATE(T)                                                                        \
  template void gather_max<T>(const Cpu&, const BlockView<Cpu>&, ConstMatrixView<T>, MatrixView<T>,    \
                              Buffer<std::int32_t>&);                                                  \
  template void gather_max_backward<T>(const Cpu&, const BlockView<Cpu>&, const Buffer<std::int64_t>&, \
                                       const Buffer<std::int32_t>&, ConstMatrixView<T>, MatrixView<T>);
ESPALIER_INSTANTIATE(float)
ESPALIER_INSTANTIATE(double)

}  // namespace espalier
