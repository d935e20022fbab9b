// A linear map for each type of vertices, y_v = x_v M_t + m_t of a vertex of type t, and its
// gradients: a product for each run of a type (BlockView::runs).
#pragma once

#include <algorithm>

#include "espalier/dense/gemm.hpp"
#include "espalier/nn/own_rows.hpp"
#include "row_sum.hpp"
#include "segment_products.hpp"

namespace espalier {

/// Calls use(type, first, rows) for each run of the first `count` columns of a block.
template <class Space, class Use>
void for_each_type_run(const BlockView<Space>& block, std::int64_t count, const Use& use) {
  if (block.runs.empty() && count > 0) use(std::int64_t{0}, std::int64_t{0}, count);
  for (const auto& run : block.runs)
    if (run.begin < count) use(std::int64_t{run.type}, run.begin, std::min(run.end, count) - run.begin);
}

/// Of `matrix` [types * in, width] and `row` [types, width], which must stay.
template <class T, class Space>
class TypeMap {
  using M = Matrix<T, Space>;
  using View = MatrixView<T, Space>;
  using ConstView = ConstMatrixView<T, Space>;

 public:
  TypeMap(const M& matrix, const M& row) : matrix_(matrix), row_(row) {}

  /// M_t [in, width].
  ConstView matrix_of(std::int64_t type) const {
    const auto in = matrix_.rows / row_.rows;
    return rows_from(ConstView(matrix_), type * in, in);
  }
  /// y [count, width], resized, of the first `count` columns of a block.
  void apply(const Space& space, const BlockView<Space>& block, ConstView x, std::int64_t count, M& y) const {
    y.resize(count, matrix_.columns);
    for_each_type_run(block, count, [&](std::int64_t type, std::int64_t first, std::int64_t rows) {
      gemm_plus_row<T>(space, rows_from(ConstView(row_), type, 1), rows_from(x, first, rows), matrix_of(type),
                       rows_from(View(y), first, rows));
    });
  }

 private:
  const M &matrix_, &row_;
};

/// drow += the sum of dy's rows. `sum` is memory to work in.
template <class T, class Space>
void add_row_sum(const Space& space, ConstMatrixView<T, Space> dy, ViewOn<Space, T> drow,
                 Matrix<T, Space>& sum) {
  sum.resize(1, dy.columns);
  sum_rows<T>(space, dy, sum);
  add_rows<T>(space, sum, drow);
}

/// What one run gives to the gradients of a map: dmatrix_t += x^T dy, drow_t += the sum of dy's
/// rows.
template <class T, class Space>
void add_map_gradients(const Space& space, std::int64_t type, ConstMatrixView<T, Space> x,
                       ConstMatrixView<T, Space> dy, Matrix<T, Space>& dmatrix, Matrix<T, Space>& drow,
                       Matrix<T, Space>& sum) {
  using View = MatrixView<T, Space>;
  gemm_tn<T>(space, x, dy, rows_from(View(dmatrix), type * x.columns, x.columns), Update::kAccumulate);
  add_row_sum<T>(space, dy, rows_from(View(drow), type, 1), sum);
}

}  // namespace espalier
