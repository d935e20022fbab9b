// Softmax and cross-entropy with a weight for each class and smoothed labels, PyTorch's
// CrossEntropyLoss(weight=w, label_smoothing=e): of C classes a row of label y has
//
//     loss_i = (1 - e) w_y (-log p_iy) + e/C sum_j w_j (-log p_ij),   p_i = softmax(z_i)
//     d loss_i / d z_ij = (1 - e) w_y (p_ij - [j == y]) + e/C (p_ij sum_k w_k - w_j)
//
// as if the label were y with probability 1 - e, and else any class (Szegedy et al. 2016, section
// 7). A mean divides by the sum of w_y over the rows. A row without a label (-1) has loss 0 and
// gradient 0.
#pragma once

#include <cstdint>
#include <span>

#include "espalier/base/execution.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/dense/matrix.hpp"

namespace espalier {

/// What a class of weight `weight` adds to the loss of a row; `label`: is it the row's? `surprise`:
/// -log of its probability. `share`: e/C.
ESPALIER_HD inline double weighted_loss(double weight, bool label, double surprise, double smoothing,
                                        double share) {
  return weight * surprise * (share + (label ? 1 - smoothing : 0.0));
}

/// d loss / d z of a class; `of_label`: the weight of the row's label, `total`: of all classes.
ESPALIER_HD inline double weighted_gradient(double weight, bool label, double probability, double of_label,
                                            double total, double smoothing, double share) {
  return (1 - smoothing) * of_label * (probability - (label ? 1.0 : 0.0)) +
         share * (probability * total - weight);
}

/// The SUM of the losses over the rows of `logits` [rows, classes], in double and in the order of
/// the rows (any number of threads gives the same bits). `dlogits` becomes scale * gradient
/// [rows, classes]. labels: [rows], in -1 .. classes-1; weights: [classes], >= 0.
template <class T>
double weighted_cross_entropy(const Cpu&, const Matrix<T>& logits, std::span<const std::int32_t> labels,
                              std::span<const double> weights, double smoothing, double scale,
                              Matrix<T>& dlogits);

/// The same on a GPU, which the host does not wait for: `labels`, `weights` and `loss` [1], which
/// becomes the sum, are device memory. Losses are added in an order of their number only, which is
/// not the CPU's; a label that is no class gives NaN.
void weighted_cross_entropy(const Cuda&, ConstMatrixView<float, Cuda> logits, const std::int32_t* labels,
                            const double* weights, double smoothing, double scale,
                            Matrix<float, Cuda>& dlogits, double* loss);

}  // namespace espalier
