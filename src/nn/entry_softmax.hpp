// The softmax of scores beside a block's entries, head by head, over the entries of a row or over
// those of each relation in it:
//
//     w_e = exp(leaky(s_e)) / sum over the entries e' of e's part of the row of exp(leaky(s_e'))
//
// leaky(s) = s for s > 0, else slope times it. Unlike nn/edge_softmax.hpp there is no weight of the
// vertex itself, and a score is a number beside the entry. Which weights dropout takes stands in
// their sign, as there: number (e - row's first) * heads + h of the row's stream decides.
//
// Law: the weights of a part of a row depend on its scores only. A GPU gives the same but for the
// rounding of exp.
#pragma once

#include "espalier/base/execution.hpp"
#include "espalier/base/philox.hpp"
#include "espalier/nn/convolution.hpp"

namespace espalier {

/// What a softmax is over.
struct SoftmaxOver {
  bool relations = false;  ///< each relation's entries of a row, or all of the row
  double slope = 1;        ///< of scores below 0
};

/// weights [entries, heads] of scores [entries, heads], resized.
template <class T>
void entry_softmax(const Cpu&, const BlockView<Cpu>& block, SoftmaxOver over, const Matrix<T>& scores,
                   const RandomStream& mask, double rate, Matrix<T>& weights);
template <class T>
void entry_softmax(const Cuda&, const BlockView<Cuda>& block, SoftmaxOver over, const Matrix<T, Cuda>& scores,
                   const RandomStream& mask, double rate, Matrix<T, Cuda>& weights);

/// gradients [entries, heads], of what weights become by dropout, become those of the scores.
template <class T, class Space>
void entry_softmax_backward(const Space&, const BlockViewOn<Space>& block, SoftmaxOver over,
                            const MatrixOn<Space, T>& scores, const MatrixOn<Space, T>& weights, double rate,
                            MatrixOn<Space, T>& gradients);

}  // namespace espalier
