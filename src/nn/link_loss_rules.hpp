// What each loss says of one positive and of one negative with its share, the weight of the
// negative among those of its example. In double; s is the sigmoid.
//
//     of_positive(numbers, p, share)       its loss and gradient
//     of_negative(numbers, p, n, share)    what a negative adds to the loss, and its gradient
//
// A loss has one gradient by the positive: that of of_positive, or, with kDifferences, minus the
// sum of the negatives'.
#pragma once

#include <cstdint>

#include "espalier/base/elementary.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/nn/link_losses.hpp"
#include "espalier/nn/sigmoid_cross_entropy.hpp"

namespace espalier {

/// How negatives share their weight.
enum class Shares {
  kEqual,        ///< 1 / k each
  kOfNegatives,  ///< their softmax, of temperature * score
  kOfAll,        ///< the softmax of the positive and the negatives
};

/// Of LinkLoss, as kernels read them.
struct LinkLossNumbers {
  double margin, temperature;
};

/// The share of a negative, or of the positive, by its score: exp(by score - largest) / total, or
/// 1 / total.
template <Shares kShares>
struct ExampleShares {
  double by, largest, total;

  ESPALIER_HD double exponent(float score) const { return by * static_cast<double>(score); }
  ESPALIER_HD double power(float score) const { return exp_of_nonpositive(exponent(score) - largest); }
  ESPALIER_HD double operator()(float score) const {
    return (kShares == Shares::kEqual ? 1.0 : power(score)) / total;
  }
};

/// -log s(p) + sum over negatives of -log s(-n) / k.
struct SigmoidLoss {
  static constexpr Shares kShares = Shares::kEqual;
  static constexpr bool kDifferences = false;

  static ESPALIER_HD LabelLoss of_positive(const LinkLossNumbers&, double p, const ExampleShares<kShares>&) {
    return label_loss(p, 1);
  }
  static ESPALIER_HD LabelLoss of_negative(const LinkLossNumbers&, double, double n, double share) {
    const auto [loss, gradient] = label_loss(n, 0);
    return {share * loss, share * gradient};
  }
};

/// sum over negatives of max(0, margin - p + n) / k.
struct MarginLoss {
  static constexpr Shares kShares = Shares::kEqual;
  static constexpr bool kDifferences = true;

  static ESPALIER_HD LabelLoss of_positive(const LinkLossNumbers&, double, const ExampleShares<kShares>&) {
    return {};
  }
  static ESPALIER_HD LabelLoss of_negative(const LinkLossNumbers& numbers, double p, double n, double share) {
    const double missing = numbers.margin - p + n;
    return missing <= 0 ? LabelLoss{} : LabelLoss{share * missing, share};
  }
};

/// -log(exp(p) / (exp(p) + sum over negatives of exp(n))).
struct SoftmaxLoss {
  static constexpr Shares kShares = Shares::kOfAll;
  static constexpr bool kDifferences = false;

  static ESPALIER_HD LabelLoss of_positive(const LinkLossNumbers&, double p,
                                           const ExampleShares<kShares>& share) {
    return {log_of_positive(share.total) + (share.largest - p), share(static_cast<float>(p)) - 1};
  }
  static ESPALIER_HD LabelLoss of_negative(const LinkLossNumbers&, double, double, double share) {
    return {0, share};
  }
};

/// -log s(margin + p) - sum over negatives of share log s(-n - margin), where shares count as
/// constants.
struct SelfAdversarialLoss {
  static constexpr Shares kShares = Shares::kOfNegatives;
  static constexpr bool kDifferences = false;

  static ESPALIER_HD LabelLoss of_positive(const LinkLossNumbers& numbers, double p,
                                           const ExampleShares<kShares>&) {
    return label_loss(numbers.margin + p, 1);
  }
  static ESPALIER_HD LabelLoss of_negative(const LinkLossNumbers& numbers, double, double n, double share) {
    const auto [loss, gradient] = label_loss(n + numbers.margin, 0);
    return {share * loss, share * gradient};
  }
};

}  // namespace espalier
