// The gradient of a bias: the sum of the rows of a matrix.
#pragma once

#include "espalier/dense/column_sums.hpp"
#include "espalier/dense/matrix.hpp"

namespace espalier {

/// sum [1, columns] = the sum over the rows of dz [rows, columns], added in double.
template <class T>
void sum_rows(const Cpu& cpu, const Matrix<T>& dz, Matrix<T>& sum) {
  Buffer<double> sums(static_cast<std::size_t>(dz.columns));
  sum_over_rows(cpu, dz.rows, sums, [&](std::int64_t i, double* partial) {
    for (std::int64_t j = 0; j < dz.columns; ++j) partial[j] += static_cast<double>(dz.row(i)[j]);
  });
  for (std::size_t j = 0; j < sums.size(); ++j) sum.data[j] = static_cast<T>(sums[j]);
}

}  // namespace espalier
