// The loss of single-label classification: softmax and cross-entropy in one pass.
//
//     loss_i = log(sum_j exp(z_ij)) - z_i,label
//     d loss_i / d z_ij = exp(z_ij) / sum_k exp(z_ik) - [j == label]
//
// The row's maximum is subtracted first, so nothing overflows. A row without a label (-1) has loss
// 0 and gradient 0.
#pragma once

#include <cstdint>
#include <span>

#include "espalier/base/execution.hpp"
#include "espalier/dense/matrix.hpp"

namespace espalier {

/// The SUM of the losses over the rows of `logits` [rows, classes], in double and in the order of
/// the rows (any number of threads gives the same bits). `dlogits` becomes scale * gradient
/// [rows, classes]. labels: [rows], in -1 .. classes-1.
template <class T>
double softmax_cross_entropy(const Cpu&, const Matrix<T>& logits, std::span<const std::int32_t> labels,
                             double scale, Matrix<T>& dlogits);

/// The same on a GPU, which the host does not wait for: `labels` [rows] and `loss` [1], which
/// becomes the sum, are device memory. The rows' losses are added in an order of their number only,
/// which is not the CPU's; a label that is no class gives NaN.
void softmax_cross_entropy(const Cuda&, ConstMatrixView<float, Cuda> logits, const std::int32_t* labels,
                           double scale, Matrix<float, Cuda>& dlogits, double* loss);

}  // namespace espalier
