// A block times a dense matrix: y_i = sum of b_ij x_j over the entries of row i, in the
// row's order.
//
// Law: row i of Y depends on row i of B and on the rows of X that it names only, bit for bit, for
// any number of threads: one thread computes a row, entry after entry, each product and each sum
// rounded by itself. A GPU gives the same bits, unless its products are to be cuSPARSE's
// (Cuda::sparse_products): that sums in an order of its own, in which a row's place may matter.
//
// The transposed product X^ = B^T Y of the backward pass is spmm with transpose(B)
// (sparse/transpose.hpp): a gather again, no atomics.
#pragma once

#include <cstdint>
#include <span>

#include "espalier/base/execution.hpp"
#include "espalier/base/half.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

/// Y = B X, or Y += B X. B [rows, columns], X [columns, f], Y [rows, f], which does not overlap X.
/// Columns of a row may be in any order and repeat; a row without entries gives zeros. Without
/// values every entry is 1.
template <class T>
void spmm(const Cpu&, const BlockView<Cpu>& block, ConstMatrixView<T> x, MatrixView<T> y,
          Update = Update::kOverwrite);
template <class T>
void spmm(const Cuda&, const BlockView<Cuda>& block, ConstMatrixView<T, Cuda> x, MatrixView<T, Cuda> y,
          Update = Update::kOverwrite);

/// Y = [X_d | B X], where X_d are the first rows of X: [rows, 2 f]. Of our own kernel, whatever
/// Cuda::sparse_products says.
template <class T>
void spmm_beside_rows(const Cuda&, const BlockView<Cuda>& block, ConstMatrixView<T, Cuda> x,
                      MatrixView<T, Cuda> y);

}  // namespace espalier
