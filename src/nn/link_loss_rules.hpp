// The table of losses, and what each says of one positive and of one negative with its share, the
// weight of the negative among those of its example. In double; s is the sigmoid. A new loss is its
// rules and a line of the table.
//
//     of_positive(numbers, p, share)       its loss and gradient
//     of_negative(numbers, p, n, share)    what a negative adds to the loss, and its gradient
//
// A loss has one gradient by the positive: that of of_positive, or, with kDifferences, minus the
// sum of the negatives'.
#pragma once

#include <cstdint>
#include <string_view>

#include "espalier/base/elementary.hpp"
#include "espalier/base/execution.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/nn/cross_entropy.hpp"
#include "espalier/nn/link_losses.hpp"

// clang-format off
//    name              rules                 margin? temperature? is
#define ESPALIER_LINK_LOSSES(loss) \
  loss(sigmoid,          SigmoidLoss,          false,  false, "binary cross-entropy: is it a link? of the positive and of each negative") \
  loss(margin,           MarginLoss,           true,   false, "how much less than `margin` the positive is above each negative") \
  loss(softmax,          SoftmaxLoss,          false,  false, "cross-entropy: which of all is the link?") \
  loss(self_adversarial, SelfAdversarialLoss,  true,   true,  "binary cross-entropy where negatives of high scores weigh more (Sun et al. 2019)")
// clang-format on

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

/// use(the rules of a loss).
template <class Use>
void with_rules_of(const LinkLoss& loss, const Use& use) {
  const std::string_view name = loss.kind->name;
#define ESPALIER_USE(kind, rules, ...) \
  if (name == #kind) return use(rules{});
  ESPALIER_LINK_LOSSES(ESPALIER_USE)
#undef ESPALIER_USE
}

/// The shares of an example. `sums` says how a thread or a warp adds over the negatives and finds
/// their largest.
template <Shares kShares, class Sums>
ESPALIER_DEVICE ExampleShares<kShares> shares_of(const Sums& sums, const LinkLossNumbers& numbers,
                                                 float positive, const float* negative, std::int64_t count) {
  ExampleShares<kShares> share{1, 0, static_cast<double>(count)};
  if constexpr (kShares != Shares::kEqual) {
    constexpr bool kAll = kShares == Shares::kOfAll;
    if (!kAll) share.by = numbers.temperature;
    share.largest = sums.largest(share.exponent(kAll || count == 0 ? positive : negative[0]), count,
                                 [&](std::int64_t j) { return share.exponent(negative[j]); });
    share.total = sums.add(count, [&](std::int64_t j) { return share.power(negative[j]); });
    if (kAll) share.total += share.power(positive);
  }
  return share;
}

/// The loss of an example and its gradient by the positive; dnegative [count] becomes scale *
/// gradient.
template <class Rules, class Sums>
ESPALIER_DEVICE LabelLoss loss_of_example(const Sums& sums, const LinkLossNumbers& numbers, float positive,
                                          const float* negative, std::int64_t count, double scale,
                                          float* dnegative) {
  const auto p = static_cast<double>(positive);
  const auto share = shares_of<Rules::kShares>(sums, numbers, positive, negative, count);
  const auto of_negative = [&](std::int64_t j) {
    return Rules::of_negative(numbers, p, static_cast<double>(negative[j]), share(negative[j]));
  };
  const double loss = sums.add(count, [&](std::int64_t j) {
    const auto of = of_negative(j);
    dnegative[j] = static_cast<float>(scale * of.gradient);
    return of.loss;
  });
  auto of = Rules::of_positive(numbers, p, share);
  if constexpr (Rules::kDifferences)
    of.gradient = -sums.add(count, [&](std::int64_t j) { return of_negative(j).gradient; });
  return {of.loss + loss, of.gradient};
}

}  // namespace espalier
