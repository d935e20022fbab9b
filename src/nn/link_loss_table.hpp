// The table of losses. A new one is its rules (link_loss_rules.hpp) and a line here.
#pragma once

#include <string_view>

#include "link_loss_rules.hpp"

// clang-format off
//    name              rules                 margin? temperature? is
#define ESPALIER_LINK_LOSSES(loss) \
  loss(sigmoid,          SigmoidLoss,          false,  false, "binary cross-entropy: is it a link? of the positive and of each negative") \
  loss(margin,           MarginLoss,           true,   false, "how much less than `margin` the positive is above each negative") \
  loss(softmax,          SoftmaxLoss,          false,  false, "cross-entropy: which of all is the link?") \
  loss(self_adversarial, SelfAdversarialLoss,  true,   true,  "binary cross-entropy where negatives of high scores weigh more (Sun et al. 2019)")
// clang-format on

namespace espalier {

/// use(the rules of a loss).
template <class Use>
void with_rules_of(const LinkLoss& loss, const Use& use) {
  const std::string_view name = loss.kind->name;
#define ESPALIER_USE(kind, rules, ...) \
  if (name == #kind) return use(rules{});
  ESPALIER_LINK_LOSSES(ESPALIER_USE)
#undef ESPALIER_USE
}

}  // namespace espalier
