// Attention's scores of projected rows, a . (x W), are products of the rows themselves with W a^T:
// a vector for each of P matrices that stand one under the other.
#pragma once

#include "espalier/base/execution.hpp"
#include "espalier/nn/convolution.hpp"

namespace espalier {

/// u [P, in], u_p = W_p a_p, of w [P * in, width] and a [P, width].
template <class T, class Space>
void score_vectors(const Space&, ConstViewOn<Space, T> w, ConstViewOn<Space, T> a, ViewOn<Space, T> u);

/// da [P, width] = the sum over i of du_pi w_pi; dw += what comes by way of u. Added in one order.
template <class T>
void score_vectors_backward(const Cpu&, ConstMatrixView<T> w, ConstMatrixView<T> a, ConstMatrixView<T> du,
                            MatrixView<T> dw, MatrixView<T> da);
template <class T>
void score_vectors_backward(const Cuda&, ConstMatrixView<T, Cuda> w, ConstMatrixView<T, Cuda> a,
                            ConstMatrixView<T, Cuda> du, MatrixView<T, Cuda> dw, MatrixView<T, Cuda> da);

}  // namespace espalier
