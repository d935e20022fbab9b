// Eigen, in double, as the oracle of products. Its headers take long to compile and nvcc does not
// like them: eigen_oracle.cpp alone includes them, is compiled once and linked to every test.
#pragma once

#include "espalier/dense/matrix.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

template <class T>
Matrix<double> in_double(const Matrix<T>& matrix) {
  Matrix<double> result(matrix.rows, matrix.columns);
  for (std::int64_t e = 0; e < matrix.rows * matrix.columns; ++e)
    result.data[e] = static_cast<double>(matrix.data[e]);
  return result;
}

/// A B. A [m, k], B [k, n]; any of them may be 0.
Matrix<double> product_by_eigen(const Matrix<double>& a, const Matrix<double>& b);
template <class A, class B>
Matrix<double> product_by_eigen(const Matrix<A>& a, const Matrix<B>& b) {
  return product_by_eigen(in_double(a), in_double(b));
}

/// The block times X [columns, f], or its transpose times X [rows, f], by Eigen's sparse product;
/// repeated entries add up.
Matrix<double> product_by_eigen(const Block& block, const Matrix<double>& x);
Matrix<double> transposed_product_by_eigen(const Block& block, const Matrix<double>& x);

/// The block as a dense matrix; repeated entries add up.
Matrix<double> to_dense(const Block& block);

/// For float and double.
template <class T>
Matrix<T> transposed(const Matrix<T>& matrix);

}  // namespace espalier
