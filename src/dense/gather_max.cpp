#include "espalier/dense/gather_max.hpp"

#include <algorithm>

namespace espalier {

namespace {

/// most = max(most, row), and `entry` where row has won. No branches, so that the compiler makes
/// vectors of it. Not "row[j] > most[j]": a NaN takes its place and keeps it.
template <class T>
void take_larger_elements(const T* __restrict row, std::int32_t entry, std::int64_t columns,
                          T* __restrict most, std::int32_t* __restrict winner) {
  for (std::int64_t j = 0; j < columns; ++j) {
    const bool wins = !(row[j] <= most[j]) & (most[j] == most[j]);
    most[j] = wins ? row[j] : most[j];
    winner[j] = wins ? entry : winner[j];
  }
}

/// sum += gradient where `entry` has won.
template <class T>
void add_where_won(const T* __restrict gradient, const std::int32_t* __restrict winner, std::int32_t entry,
                   std::int64_t columns, T* __restrict sum) {
  for (std::int64_t j = 0; j < columns; ++j) {
    const T added = gradient[j];
    sum[j] += winner[j] == entry ? added : T{0};
  }
}

}  // namespace

template <class T>
void gather_max(const Cpu& cpu, const BlockView<Cpu>& block, ConstMatrixView<T> x, MatrixView<T> m,
                Buffer<std::int32_t>& winners) {
  winners.resize(m.rows * m.columns);
#pragma omp parallel for num_threads(cpu.threads) schedule(dynamic, 64) if (block.rows > 64)
  for (std::int64_t i = 0; i < block.rows; ++i) {
    T* const most = m.row(i);
    std::int32_t* const winner = winners.data() + i * m.columns;
    const std::int64_t begin = block.row_begin(i), end = block.row_end(i);
    if (begin == end) {
      std::fill_n(most, m.columns, T{0});
      std::fill_n(winner, m.columns, -1);
      continue;
    }
    const auto entry_of = [&](std::int64_t e) { return static_cast<std::int32_t>(e - block.indptr[0]); };
    std::copy_n(x.row(block.indices[begin]), m.columns, most);
    std::fill_n(winner, m.columns, entry_of(begin));
    for (std::int64_t e = begin + 1; e < end; ++e)
      take_larger_elements(x.row(block.indices[e]), entry_of(e), m.columns, most, winner);
  }
}

template <class T>
void gather_max_backward(const Cpu& cpu, const BlockView<Cpu>& transposed,
                         const Buffer<std::int32_t>& positions, const Buffer<std::int32_t>& winners,
                         ConstMatrixView<T> dm, MatrixView<T> dx) {
#pragma omp parallel for num_threads(cpu.threads) schedule(dynamic, 64) if (transposed.rows > 64)
  for (std::int64_t j = 0; j < transposed.rows; ++j) {
    T* const sum = dx.row(j);
    std::fill_n(sum, dx.columns, T{0});
    for (std::int64_t k = transposed.row_begin(j); k < transposed.row_end(j); ++k) {
      const std::int64_t i = transposed.indices[k];
      add_where_won(dm.row(i), winners.data() + i * dx.columns, positions[k], dx.columns, sum);
    }
  }
}

#define ESPALIER_INSTANTIATE(T)                                                                        \
  template void gather_max<T>(const Cpu&, const BlockView<Cpu>&, ConstMatrixView<T>, MatrixView<T>,    \
                              Buffer<std::int32_t>&);                                                  \
  template void gather_max_backward<T>(const Cpu&, const BlockView<Cpu>&, const Buffer<std::int32_t>&, \
                                       const Buffer<std::int32_t>&, ConstMatrixView<T>, MatrixView<T>);
ESPALIER_INSTANTIATE(float)
ESPALIER_INSTANTIATE(double)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
