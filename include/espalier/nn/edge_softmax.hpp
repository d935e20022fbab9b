// Attention over the entries of a block (Velickovic et al., Graph Attention Networks, ICLR 2018),
// head by head:
//
//     e_ij = leaky_relu(s_j + t_i + c_ij)      s = P a_source, t = P a_target, slope 0.2; c: what
//                                              features of the edge add (src/nn/edge_terms.hpp)
//     w_ij = exp(e_ij) / sum_k exp(e_ik)       over the entries of row i and the vertex i itself
//     z_i  = sum_j d(w_ij) p_j                 d: dropout of weights
//
// A row's weights lie side by side: those of its entries in their order, then its own. Row i's
// begin at row (indptr[i] - indptr[0]) + i of a matrix [entries + rows, heads]. An entry (i, i)
// that the block has is the vertex itself: it gets no weight of its own. Which weights are dropped
// stands in their sign: a dropped one is negative (or -0).
//
// Laws: row i of the weights and of Z depends on row i of B and on the rows of s and P that it
// names only, for any number of threads; gradients are sums in one order. A GPU gives the same but
// for the rounding of exp.
#pragma once

#include <cmath>
#include <cstdint>

#include "espalier/base/execution.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/base/philox.hpp"
#include "espalier/nn/views.hpp"

namespace espalier {

inline constexpr double kLeakySlope = 0.2;

/// s [n, heads]: s_ih = the product of part h of row i of p [n, heads * width] with row h of a
/// [heads, width].
template <class T, class Space>
void head_scores(const Space&, ConstViewOn<Space, T> p, const MatrixOn<Space, T>& a, ViewOn<Space, T> s);

/// Of s and t as above the weights [entries + rows, heads], resized; source [columns, heads],
/// target [rows, heads]. `mask`: what is dropped is drawn from it, row by row; nothing
/// with rate 0. `terms`: c, where the weights will be; null: 0.
template <class T>
void edge_softmax(const Cpu&, const BlockView<Cpu>& block, const Matrix<T>& source, const Matrix<T>& target,
                  const Matrix<T>* terms, const KeyedStream& mask, double rate, Matrix<T>& weights);
template <class T>
void edge_softmax(const Cuda&, const BlockView<Cuda>& block, const Matrix<T, Cuda>& source,
                  const Matrix<T, Cuda>& target, const Matrix<T, Cuda>* terms, const KeyedStream& mask,
                  double rate, Matrix<T, Cuda>& weights);

/// Z [rows, heads * width] = sum of weighted rows of P [columns, heads * width], or += it.
template <class T>
void attend(const Cpu&, const BlockView<Cpu>& block, const Matrix<T>& weights, double rate,
            ConstMatrixView<T> p, MatrixView<T> z, Update = Update::kOverwrite);
template <class T>
void attend(const Cuda&, const BlockView<Cuda>& block, const Matrix<T, Cuda>& weights, double rate,
            ConstMatrixView<T, Cuda> p, MatrixView<T, Cuda> z, Update = Update::kOverwrite);

/// Gradients of what stands before the leaky ReLU, beside the weights (resized), and of the targets
/// [rows, heads], for dZ [rows, heads * width].
template <class T>
void edge_softmax_backward(const Cpu&, const BlockView<Cpu>& block, const Matrix<T>& weights, double rate,
                           const Matrix<T>& source, const Matrix<T>& target, const Matrix<T>* terms,
                           ConstMatrixView<T> p, ConstMatrixView<T> dz, Matrix<T>& dweights,
                           Matrix<T>& dtarget);
template <class T>
void edge_softmax_backward(const Cuda&, const BlockView<Cuda>& block, const Matrix<T, Cuda>& weights,
                           double rate, const Matrix<T, Cuda>& source, const Matrix<T, Cuda>& target,
                           const Matrix<T, Cuda>* terms, ConstMatrixView<T, Cuda> p,
                           ConstMatrixView<T, Cuda> dz, Matrix<T, Cuda>& dweights, Matrix<T, Cuda>& dtarget);

/// What the sources get: dsource [columns, heads], and dP [columns, heads * width], with what comes
/// by way of the scores: dp_j = sum_i d(w_ij) dz_i + ds_j a_source + (if j is a destination) dt_j
/// a_target. `transposed` and `positions` are those of transpose(block).
template <class T>
void attend_backward(const Cpu&, const BlockView<Cpu>& transposed, const Buffer<std::int32_t>& positions,
                     const Matrix<T>& weights, double rate, const Matrix<T>& dweights,
                     const Matrix<T>& dtarget, const BlockView<Cpu>& block, ConstMatrixView<T> dz,
                     const Matrix<T>& a_source, const Matrix<T>& a_target, Matrix<T>& dsource, Matrix<T>& dp);
template <class T>
void attend_backward(const Cuda&, const BlockView<Cuda>& transposed,
                     const DeviceArray<std::int32_t>& positions, const Matrix<T, Cuda>& weights, double rate,
                     const Matrix<T, Cuda>& dweights, const Matrix<T, Cuda>& dtarget,
                     const BlockView<Cuda>& block, ConstMatrixView<T, Cuda> dz,
                     const Matrix<T, Cuda>& a_source, const Matrix<T, Cuda>& a_target,
                     Matrix<T, Cuda>& dsource, Matrix<T, Cuda>& dp);

/// da [heads, width] = sum over i of ds_ih p_ih: the gradient of head_scores' a, added in double.
template <class T>
void head_scores_backward(const Cpu&, ConstMatrixView<T> p, const Matrix<T>& ds, Matrix<T>& da);
template <class T>
void head_scores_backward(const Cuda&, ConstMatrixView<T, Cuda> p, const Matrix<T, Cuda>& ds,
                          Matrix<T, Cuda>& da);

/// z [rows, width] = the mean of the heads' parts of all [rows, heads * width], plus the row
/// `bias`; and backwards: every part of dall becomes dz / heads.
template <class T, class Space>
void average_heads(const Space&, const MatrixOn<Space, T>& all, const MatrixOn<Space, T>& bias,
                   ViewOn<Space, T> z);
template <class T, class Space>
void average_heads_backward(const Space&, ConstViewOn<Space, T> dz, MatrixOn<Space, T>& dall);

}  // namespace espalier
