// The loss of classification with several labels per row: sigmoid and cross-entropy in one pass.
//
//     loss_ij = max(z_ij, 0) - z_ij y_ij + log(1 + exp(-|z_ij|))
//     d loss_ij / d z_ij = 1 / (1 + exp(-z_ij)) - y_ij
//
// which is -log of the probability that a sigmoid gives to the label y_ij, in a form where nothing
// overflows. A label that is neither 0 nor 1 is unknown: loss 0 and gradient 0.
#pragma once

#include <cstdint>
#include <span>

#include "espalier/base/elementary.hpp"
#include "espalier/base/execution.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/dense/matrix.hpp"

namespace espalier {

struct LabelLoss {
  double loss = 0, gradient = 0;
};

/// Of one logit and one label.
ESPALIER_HD inline LabelLoss label_loss(double logit, std::uint8_t label) {
  if (label > 1) return {};
  const double exponential = exp_of_nonpositive(logit < 0 ? logit : -logit);  // in (0, 1]
  const double sigmoid = (logit < 0 ? exponential : 1.0) / (1.0 + exponential);
  return {(logit > 0 ? logit : 0.0) - (label == 1 ? logit : 0.0) + log1p_of_fraction(exponential),
          sigmoid - (label == 1 ? 1.0 : 0.0)};
}

/// The SUM of the losses over rows and columns of `logits` [rows, labels], in double and in the
/// order of the rows (any number of threads gives the same bits). `dlogits` becomes scale *
/// gradient [rows, labels]. labels: [rows * columns], row after row.
template <class T>
double sigmoid_cross_entropy(const Cpu&, const Matrix<T>& logits, std::span<const std::uint8_t> labels,
                             double scale, Matrix<T>& dlogits);

/// The same on a GPU, which the host does not wait for: `labels` and `loss` [1], which becomes the
/// sum, are device memory. Losses are added in an order of their number only, which is not the
/// CPU's.
void sigmoid_cross_entropy(const Cuda&, ConstMatrixView<float, Cuda> logits, const std::uint8_t* labels,
                           double scale, Matrix<float, Cuda>& dlogits, double* loss);

}  // namespace espalier
