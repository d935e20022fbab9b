// The graph convolution of Kipf and Welling (Semi-supervised classification with graph
// convolutional networks, ICLR 2017).
//
//     Z = B X W + b
//
//     X [columns, in] the sources, B [rows, columns] the block: rows of the normalised adjacency
//     matrix with self entries, or an unbiased estimate of them; W [in, out], b [1, out],
//     Z [rows, out]
#pragma once

#include "espalier/base/execution.hpp"
#include "espalier/nn/layer_input.hpp"

namespace espalier {

/// References to a layer's two tensors.
template <class M>
struct GcnTensors {
  M& weight;
  M& bias;
};

/// Z as above; `z` is resized. `product` receives B X [rows, in] when aggregating first, which
/// backward reads, else X W.
template <class T, class Space>
void gcn_forward(const Space&, const BlockViewOn<Space>& block, ProductOrder order,
                 const InputOn<Space, T>& x, GcnTensors<const MatrixOn<Space, T>> weights,
                 MatrixOn<Space, T>& product, MatrixOn<Space, T>& z);

/// Overwrites the gradients of the weights, not that of the bias (nn/layer.hpp), and, unless `dx`
/// is null, of X (resized to [columns, in]):
///     dW = (B X)^T dZ = X^T (B^T dZ)      dX = B^T dZ W^T
/// `order`, `x` and `product` as in forward; `product` is overwritten. `transposed` = B^T is read
/// when multiplying first or when dx is asked for.
template <class T, class Space>
void gcn_backward(const Space&, const BlockViewOn<Space>& transposed, ProductOrder order,
                  const InputOn<Space, T>& x, GcnTensors<const MatrixOn<Space, T>> weights,
                  MatrixOn<Space, T>& product, const MatrixOn<Space, T>& dz, MatrixOn<Space, T>& dweight,
                  MatrixOn<Space, T>* dx);

}  // namespace espalier
