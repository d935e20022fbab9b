// Products of what a layer reads, whether it is a matrix or entries of a sparse one.
//
// Law, as of dense/gemm.hpp and dense/spmm.hpp: row i of X W depends on row i of X and on W only,
// and no result depends on the number of threads.
#pragma once

#include "espalier/dense/gemm.hpp"
#include "espalier/dense/spmm.hpp"
#include "espalier/nn/layer.hpp"
#include "espalier/sparse/transpose.hpp"

namespace espalier {

/// The entries of its rows, where it has entries.
template <class T, class Space>
BlockView<Space> entries_of(const LayerInput<T, Space>& x) {
  return first_rows(*x.entries, x.rows);
}

/// C = X W, or C += X W.
template <class T, class Space>
void multiply(const Space& space, const InputOn<Space, T>& x, ConstViewOn<Space, T> w, ViewOn<Space, T> c,
              Update update = Update::kOverwrite) {
  if (x.entries == nullptr) return gemm<T>(space, x, w, c, update);
  spmm<T>(space, entries_of(x), w, c, update);
}

/// C = row + X W.
template <class T, class Space>
void multiply_plus_row(const Space& space, const MatrixOn<Space, T>& row, const InputOn<Space, T>& x,
                       ConstViewOn<Space, T> w, ViewOn<Space, T> c) {
  if (x.entries == nullptr) return gemm_plus_row<T>(space, row, x, w, c);
  fill_rows<T>(space, row, c);
  spmm<T>(space, entries_of(x), w, c, Update::kAccumulate);
}

/// C = X^T D.
template <class T, class Space>
void multiply_transposed(const Space& space, const InputOn<Space, T>& x, ConstViewOn<Space, T> d,
                         ViewOn<Space, T> c) {
  if (x.entries == nullptr) return gemm_tn<T>(space, x, d, c);
  transpose(space, entries_of(x), *x.transposed);
  spmm<T>(space, *x.transposed, d, c);
}

}  // namespace espalier
