#include "dense/eigen_oracle.hpp"

// Plain loops are what an oracle needs, and half as long to compile.
#define EIGEN_DONT_PARALLELIZE
#define EIGEN_DONT_VECTORIZE
#include <Eigen/SparseCore>
#include <vector>

namespace espalier {
namespace {

template <class T>
using RowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using SparseMatrix = Eigen::SparseMatrix<double, Eigen::RowMajor>;

template <class T>
Eigen::Map<const RowMajor<T>> view_of(const Matrix<T>& matrix) {
  return {matrix.data.data(), matrix.rows, matrix.columns};
}

template <class T, class Expression>
Matrix<T> matrix_of(const Expression& expression) {
  Matrix<T> result(expression.rows(), expression.cols());
  Eigen::Map<RowMajor<T>>(result.data.data(), result.rows, result.columns) = expression;
  return result;
}

SparseMatrix sparse_matrix_of(const Block& block) {
  std::vector<Eigen::Triplet<double>> entries;
  for (std::int64_t i = 0; i < block.rows; ++i)
    for (std::int64_t e = block.row_begin(i); e < block.row_end(i); ++e)
      entries.emplace_back(static_cast<int>(i), block.indices[e],
                           block.has_values() ? static_cast<double>(block.values[e]) : 1.0);
  SparseMatrix matrix(block.rows, block.columns);
  matrix.setFromTriplets(entries.begin(), entries.end());
  return matrix;
}

}  // namespace

Matrix<double> product_by_eigen(const Matrix<double>& a, const Matrix<double>& b) {
  return matrix_of<double>(view_of(a) * view_of(b));
}

Matrix<double> product_by_eigen(const Block& block, const Matrix<double>& x) {
  return matrix_of<double>(sparse_matrix_of(block) * view_of(x));
}

Matrix<double> transposed_product_by_eigen(const Block& block, const Matrix<double>& x) {
  return matrix_of<double>(sparse_matrix_of(block).transpose() * view_of(x));
}

Matrix<double> to_dense(const Block& block) {
  return matrix_of<double>(sparse_matrix_of(block));
}

template <class T>
Matrix<T> transposed(const Matrix<T>& matrix) {
  return matrix_of<T>(view_of(matrix).transpose());
}

template Matrix<float> transposed(const Matrix<float>&);
template Matrix<double> transposed(const Matrix<double>&);

}  // namespace espalier
