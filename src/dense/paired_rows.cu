// A thread has a pair.
#include "espalier/base/launch.hpp"
#include "espalier/dense/device_matrix.hpp"
#include "espalier/dense/paired_rows.hpp"

namespace espalier {

template <class T>
void widen_rows(const Cuda& cuda, const PairedRows<T, Cuda>& rows, Matrix<T, Cuda>& to) {
  to.resize(rows.pairs.rows, rows.columns);
  fill_zero(cuda, to.data);
  const auto pairs = rows.pairs;
  const MatrixView<T, Cuda> wide(to);
  for_each_in_rows(cuda, "widen_rows", pairs.rows, rows.pairs_of_row(),
                   [=] __device__(std::int64_t i, std::int64_t k) {
                     const T value = pairs(i, 2 * k + 1);
                     if (value != 0) wide(i, static_cast<std::int64_t>(pairs(i, 2 * k))) = value;
                   });
}

template <class T>
void to_entries(const Cuda& cuda, const PairedRows<T, Cuda>& rows, Csr<std::int32_t, Cuda>& to) {
  const auto pairs = rows.pairs;
  const auto of_row = rows.pairs_of_row(), columns = rows.columns;
  to.rows = pairs.rows;
  to.columns = columns;
  to.indptr.resize(pairs.rows + 1);
  to.indices.resize(pairs.rows * of_row);
  to.values.resize(pairs.rows * of_row);
  auto* const indptr = to.indptr.data();
  auto* const indices = to.indices.data();
  auto* const values = to.values.data();
  for_each(cuda, "row_starts", pairs.rows + 1, [=] __device__(std::int64_t i) { indptr[i] = i * of_row; });
  for_each_in_rows(cuda, "to_entries", pairs.rows, of_row, [=] __device__(std::int64_t i, std::int64_t k) {
    const auto at = i * of_row + k;
    const T value = pairs(i, 2 * k + 1);
    indices[at] =
        static_cast<std::int32_t>(value != 0 ? static_cast<std::int64_t>(pairs(i, 2 * k)) : at % columns);
    values[at] = static_cast<float>(value);
  });
}

template void widen_rows(const Cuda&, const PairedRows<float, Cuda>&, Matrix<float, Cuda>&);
template void to_entries(const Cuda&, const PairedRows<float, Cuda>&, Csr<std::int32_t, Cuda>&);

}  // namespace espalier
