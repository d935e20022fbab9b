// Products of dense matrices: C = A B, C = A^T B, C = A B^T, or += with Update::kAccumulate.
//
// Two laws, which evaluation and reproducible training stand on:
//   - row i of A B (and of A B^T) depends on row i of A and on B only, bit for bit;
//   - no result depends on the number of threads.
// The first means that neither i nor the number of rows matters, so it does not matter over which
// ranks, or in which chunks, the rows of a graph are spread. The sources say how they are kept
// although BLAS promises neither. Products of float32 in bfloat16 (`Cpu`'s precision) keep them
// too, and are the same on every CPU (src/dense/bf16_kernels.hpp).
//
// On a GPU the product is cuBLAS's, in the precision of `Cuda`: the same bits for the same shapes
// and data from run to run, but which order it sums in may depend on the number of rows.
#pragma once

#include "espalier/base/execution.hpp"
#include "espalier/dense/matrix.hpp"

namespace espalier {

/// Are products in bfloat16 faster than those in float32 on this CPU: has it AMX? Without, they
/// take twice as long.
bool has_fast_bf16();

/// C = A B, the forward product. A [m, k], B [k, n], C [m, n], which does not overlap A or B.
template <class T>
void gemm(const Cpu&, ConstMatrixView<T> a, ConstMatrixView<T> b, MatrixView<T> c,
          Update = Update::kOverwrite);
template <class T>
void gemm(const Cuda&, ConstMatrixView<T, Cuda> a, ConstMatrixView<T, Cuda> b, MatrixView<T, Cuda> c,
          Update = Update::kOverwrite);

/// C = row + A B: every row of C begins as the bias `row` [1, n], to which the product is added.
template <class T>
void gemm_plus_row(const Cpu&, ConstMatrixView<T> row, ConstMatrixView<T> a, ConstMatrixView<T> b,
                   MatrixView<T> c);
template <class T>
void gemm_plus_row(const Cuda&, ConstMatrixView<T, Cuda> row, ConstMatrixView<T, Cuda> a,
                   ConstMatrixView<T, Cuda> b, MatrixView<T, Cuda> c);

/// Every row of C becomes `row` [1, columns of C].
template <class T>
void fill_rows(const Cpu&, ConstMatrixView<T> row, MatrixView<T> c);
template <class T>
void fill_rows(const Cuda&, ConstMatrixView<T, Cuda> row, MatrixView<T, Cuda> c);

/// C = A^T B, the gradient of a weight matrix. A [k, m], B [k, n], C [m, n]; meant for k much
/// larger than m and n.
template <class T>
void gemm_tn(const Cpu&, ConstMatrixView<T> a, ConstMatrixView<T> b, MatrixView<T> c,
             Update = Update::kOverwrite);
template <class T>
void gemm_tn(const Cuda&, ConstMatrixView<T, Cuda> a, ConstMatrixView<T, Cuda> b, MatrixView<T, Cuda> c,
             Update = Update::kOverwrite);

/// C = A B^T, the gradient of a layer's input. A [m, k], B [n, k], C [m, n].
template <class T>
void gemm_nt(const Cpu&, ConstMatrixView<T> a, ConstMatrixView<T> b, MatrixView<T> c,
             Update = Update::kOverwrite);
template <class T>
void gemm_nt(const Cuda&, ConstMatrixView<T, Cuda> a, ConstMatrixView<T, Cuda> b, MatrixView<T, Cuda> c,
             Update = Update::kOverwrite);

}  // namespace espalier
