// GraphSAGE with the mean aggregator (Hamilton, Ying, Leskovec: Inductive representation learning
// on large graphs, NeurIPS 2017).
//
//     Z = X_d W_self + (B X) W_neighbour + b
//
//     X [columns, in]     the sources; its first `rows` rows X_d are the destinations
//     B [rows, columns]   the block; with values 1 / |picks|, B X is the mean over the
//                         sampled neighbours
//     W_self, W_neighbour [in, out], b [1, out], Z [rows, out]
//
// (W_self, W_neighbour side by side are the paper's W applied to the concatenation of a vertex and
// its neighbours' mean.)
#pragma once

#include "espalier/base/execution.hpp"
#include "espalier/nn/layer_input.hpp"

namespace espalier {

/// References to a layer's three tensors.
template <class M>
struct SageTensors {
  M& self;
  M& neighbour;
  M& bias;
};

/// Z as above; `z` is resized. `product` receives B X [rows, in] when aggregating first, which
/// backward reads, else X W_neighbour.
template <class T, class Space>
void sage_forward(const Space&, const BlockViewOn<Space>& block, ProductOrder order,
                  const InputOn<Space, T>& x, SageTensors<const MatrixOn<Space, T>> weights,
                  MatrixOn<Space, T>& product, MatrixOn<Space, T>& z);

/// Overwrites the gradients of the weights, not that of the bias (nn/layer.hpp), and, unless `dx`
/// is null, of X (resized to [columns, in]):
///     dW_self = X_d^T dZ    dW_neighbour = (B X)^T dZ = X^T (B^T dZ)
///     dX      = B^T dZ W_neighbour^T, and its first rows += dZ W_self^T
/// `order`, `x` and `product` as in forward; `product` is overwritten. `transposed` = B^T is read
/// when multiplying first or when dx is asked for.
template <class T, class Space>
void sage_backward(const Space&, const BlockViewOn<Space>& block, const BlockViewOn<Space>& transposed,
                   ProductOrder order, const InputOn<Space, T>& x,
                   SageTensors<const MatrixOn<Space, T>> weights, MatrixOn<Space, T>& product,
                   const MatrixOn<Space, T>& dz, MatrixOn<Space, T>& dself, MatrixOn<Space, T>& dneighbour,
                   MatrixOn<Space, T>* dx);

}  // namespace espalier
