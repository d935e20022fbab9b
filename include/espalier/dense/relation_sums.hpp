// Sums over the neighbours of each relation, combined with coefficients: the products of a
// convolution whose relations share bases (Schlichtkrull et al. 2018, equation 3).
//
//     s_vr = sum over the entries (v, u) of relation r of b_vu x_u
//     m_vb = sum over r of a_rb s_vr                  B of them for each row, side by side
//
// so that M [V_1; ..; V_B] = sum over r of s_vr W_r with W_r = sum over b of a_rb V_b: one sparse
// product and one GEMM, however many relations there are.
//
// Law: a row of a result depends on what it names only, bit for bit, for any number of threads; the
// gradient by the coefficients is summed in one order. Where a block has no relations beside its
// entries, all are of relation 0.
#pragma once

#include "espalier/base/execution.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

/// M [rows, B f] of the block [rows, columns], a [R, B] and x [columns, f].
template <class T>
void relation_sums(const Cpu&, const BlockView<Cpu>& block, ConstMatrixView<T> a, ConstMatrixView<T> x,
                   MatrixView<T> m);
template <class T>
void relation_sums(const Cuda&, const BlockView<Cuda>& block, ConstMatrixView<T, Cuda> a,
                   ConstMatrixView<T, Cuda> x, MatrixView<T, Cuda> m);

/// dX [columns, f] from dM: `transposed` and `positions` are of transpose(block).
template <class T>
void relation_sums_input_gradient(const Cpu&, const BlockView<Cpu>& block, const BlockView<Cpu>& transposed,
                                  const Buffer<std::int64_t>& positions, ConstMatrixView<T> a,
                                  ConstMatrixView<T> dm, MatrixView<T> dx);
template <class T>
void relation_sums_input_gradient(const Cuda&, const BlockView<Cuda>& block,
                                  const BlockView<Cuda>& transposed,
                                  const DeviceArray<std::int64_t>& positions, ConstMatrixView<T, Cuda> a,
                                  ConstMatrixView<T, Cuda> dm, MatrixView<T, Cuda> dx);

/// da [R, B] from dM.
template <class T>
void relation_sums_coefficient_gradient(const Cpu&, const BlockView<Cpu>& block, ConstMatrixView<T> x,
                                        ConstMatrixView<T> dm, MatrixView<T> da);
template <class T>
void relation_sums_coefficient_gradient(const Cuda&, const BlockView<Cuda>& block, ConstMatrixView<T, Cuda> x,
                                        ConstMatrixView<T, Cuda> dm, MatrixView<T, Cuda> da);

}  // namespace espalier
