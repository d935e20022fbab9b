// One thread unpacks a row.
#include "espalier/dense/paired_rows.hpp"

#include <algorithm>

namespace espalier {

template <class T>
void widen_rows(const Cpu& cpu, const PairedRows<T>& rows, Matrix<T>& to) {
  to.resize(rows.pairs.rows, rows.columns);
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
  for (std::int64_t i = 0; i < to.rows; ++i) {
    std::fill_n(to.row(i), to.columns, T{0});
    const T* pair = rows.pairs.row(i);
    for (std::int64_t k = 0; k < rows.pairs_of_row(); ++k, pair += 2)
      if (pair[1] != 0) to(i, static_cast<std::int64_t>(pair[0])) = pair[1];
  }
}

template <class T>
void to_entries(const Cpu& cpu, const PairedRows<T>& rows, Csr<std::int32_t>& to) {
  const auto& pairs = rows.pairs;
  const auto each_entry = [&](std::int64_t row, auto use) {
    const T* pair = pairs.row(row);
    for (std::int64_t k = 0; k < rows.pairs_of_row(); ++k, pair += 2)
      if (pair[1] != 0) use(static_cast<std::int32_t>(pair[0]), static_cast<float>(pair[1]));
  };
  to.rows = pairs.rows;
  to.columns = rows.columns;
  to.indptr.resize(pairs.rows + 1);
  to.indptr[0] = 0;
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
  for (std::int64_t i = 0; i < pairs.rows; ++i) {
    std::int64_t count = 0;
    each_entry(i, [&](std::int32_t, float) { ++count; });
    to.indptr[i + 1] = count;
  }
  for (std::int64_t i = 0; i < pairs.rows; ++i) to.indptr[i + 1] += to.indptr[i];
  to.indices.resize(to.indptr[pairs.rows]);
  to.values.resize(to.indptr[pairs.rows]);
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
  for (std::int64_t i = 0; i < pairs.rows; ++i) {
    auto at = to.indptr[i];
    each_entry(i, [&](std::int32_t column, float value) {
      to.indices[at] = column;
      to.values[at++] = value;
    });
  }
}

#define ESPALIER_INSTANTIATE(T)                                           \
  template void widen_rows(const Cpu&, const PairedRows<T>&, Matrix<T>&); \
  template void to_entries(const Cpu&, const PairedRows<T>&, Csr<std::int32_t>&);
ESPALIER_INSTANTIATE(float)
ESPALIER_INSTANTIATE(double)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
