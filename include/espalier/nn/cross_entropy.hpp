// The losses of classification, each with the softmax or the sigmoid that stands before it in one
// pass. A row or a label that is not known has loss 0 and gradient 0.
//
// Of one label of C classes, p_i = softmax(z_i); the row's maximum is subtracted first, so nothing
// overflows:
//
//     loss_i = -log p_iy = log(sum_j exp(z_ij)) - z_iy
//     d loss_i / d z_ij = p_ij - [j == y]
//
// With a weight for each class and smoothed labels, PyTorch's CrossEntropyLoss(weight=w,
// label_smoothing=e): as if the label were y with probability 1 - e, and else any class (Szegedy et
// al. 2016, section 7). A mean divides by the sum of w_y over the rows.
//
//     loss_i = (1 - e) w_y (-log p_iy) + e/C sum_j w_j (-log p_ij)
//     d loss_i / d z_ij = (1 - e) w_y (p_ij - [j == y]) + e/C (p_ij sum_k w_k - w_j)
//
// Of several labels y_ij for a row, -log of the probability that a sigmoid gives to each, in a form
// where nothing overflows:
//
//     loss_ij = max(z_ij, 0) - z_ij y_ij + log(1 + exp(-|z_ij|))
//     d loss_ij / d z_ij = 1 / (1 + exp(-z_ij)) - y_ij
//
// All give the SUM of the losses over the rows of `logits` [rows, classes], in double, and
// `dlogits` becomes scale * gradient [rows, classes]. On the CPU rows are added in their order (any
// number of threads gives the same bits). A GPU, which the host does not wait for, is given device
// memory, and *loss becomes the sum, in an order of the rows' number only, which is not the CPU's.
#pragma once

#include <cstdint>
#include <span>

#include "espalier/base/elementary.hpp"
#include "espalier/base/execution.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/dense/matrix.hpp"

namespace espalier {

/// labels: [rows], in -1 .. classes-1, -1: not known. On a GPU a label that is no class gives NaN.
template <class T>
double softmax_cross_entropy(const Cpu&, const Matrix<T>& logits, std::span<const std::int32_t> labels,
                             double scale, Matrix<T>& dlogits);
void softmax_cross_entropy(const Cuda&, ConstMatrixView<float, Cuda> logits, const std::int32_t* labels,
                           double scale, Matrix<float, Cuda>& dlogits, double* loss);

/// The same with weights: [classes], >= 0.
template <class T>
double weighted_cross_entropy(const Cpu&, const Matrix<T>& logits, std::span<const std::int32_t> labels,
                              std::span<const double> weights, double smoothing, double scale,
                              Matrix<T>& dlogits);
void weighted_cross_entropy(const Cuda&, ConstMatrixView<float, Cuda> logits, const std::int32_t* labels,
                            const double* weights, double smoothing, double scale,
                            Matrix<float, Cuda>& dlogits, double* loss);

/// labels: [rows * classes], row after row; what is neither 0 nor 1 is not known.
template <class T>
double sigmoid_cross_entropy(const Cpu&, const Matrix<T>& logits, std::span<const std::uint8_t> labels,
                             double scale, Matrix<T>& dlogits);
void sigmoid_cross_entropy(const Cuda&, ConstMatrixView<float, Cuda> logits, const std::uint8_t* labels,
                           double scale, Matrix<float, Cuda>& dlogits, double* loss);

// ---- of one element, for both spaces

struct LabelLoss {
  double loss = 0, gradient = 0;
};

/// Of one logit and one of several labels.
ESPALIER_HD inline LabelLoss label_loss(double logit, std::uint8_t label) {
  if (label > 1) return {};
  const double exponential = exp_of_nonpositive(logit < 0 ? logit : -logit);  // in (0, 1]
  const double sigmoid = (logit < 0 ? exponential : 1.0) / (1.0 + exponential);
  return {(logit > 0 ? logit : 0.0) - (label == 1 ? logit : 0.0) + log1p_of_fraction(exponential),
          sigmoid - (label == 1 ? 1.0 : 0.0)};
}

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

}  // namespace espalier
