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
// gradient by the coefficients is summed in one order. Relations of a row ascend. Where a block has
// no relations beside its entries, all are of relation 0.
#pragma once

#include <algorithm>
#include <cstdint>

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

/// Is the gradient by X made by way of those of the sums s_vr, on the CPU? With few bases it is
/// cheaper to combine for each entry what is gathered.
inline bool gathers_gradients_of_sums(std::int64_t bases) {
  return bases > 2;
}

/// Memory that the gradient by X is worked out in, if it is made by way of the sums'.
template <class T, class Space>
struct RelationScratch {
  Matrix<T, Space>& gradients;          ///< of the sums s_vr, in the order of the entries: resized
                                        ///< to [most_relation_sums, f]
  Array<Space, std::int32_t>& numbers;  ///< [entries] each entry's sum
};

/// The most sums s_vr that a block of so many rows and entries can have.
inline std::int64_t most_relation_sums(std::int64_t rows, std::int64_t entries, std::int64_t relations) {
  return std::min(entries, rows * relations);
}

/// dX [columns, f] from dM: `transposed` and `positions` are of transpose(block). Where the CPU
/// goes by way of the sums, `transposed` names these instead of rows afterwards. A GPU never does.
template <class T>
void relation_sums_input_gradient(const Cpu&, const BlockView<Cpu>& block, Csr<std::int32_t>& transposed,
                                  const Buffer<std::int32_t>& positions, ConstMatrixView<T> a,
                                  ConstMatrixView<T> dm, RelationScratch<T, Cpu> scratch, MatrixView<T> dx);
template <class T>
void relation_sums_input_gradient(const Cuda&, const BlockView<Cuda>& block,
                                  const Csr<std::int32_t, Cuda>& transposed,
                                  const DeviceArray<std::int32_t>& positions, ConstMatrixView<T, Cuda> a,
                                  ConstMatrixView<T, Cuda> dm, RelationScratch<T, Cuda> scratch,
                                  MatrixView<T, Cuda> dx);

/// da [R, B] from dM.
template <class T>
void relation_sums_coefficient_gradient(const Cpu&, const BlockView<Cpu>& block, ConstMatrixView<T> x,
                                        ConstMatrixView<T> dm, MatrixView<T> da);
template <class T>
void relation_sums_coefficient_gradient(const Cuda&, const BlockView<Cuda>& block, ConstMatrixView<T, Cuda> x,
                                        ConstMatrixView<T, Cuda> dm, MatrixView<T, Cuda> da);

}  // namespace espalier
