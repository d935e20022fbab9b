// What the program knows of scores and losses of links; the tables are in link_score_table.hpp and
// link_loss_rules.hpp.
#include "espalier/base/named.hpp"
#include "link_loss_rules.hpp"
#include "link_score_table.hpp"

namespace espalier {

namespace {

#define ESPALIER_KIND(name, rules, second, ...) \
  {#name, rules::kNumbers, rules::kRelationNumbers, __VA_ARGS__},
constexpr LinkScoreKind kLinkScores[] = {ESPALIER_LINK_SCORES(ESPALIER_KIND)};
#undef ESPALIER_KIND

#define ESPALIER_KIND(name, rules, ...) {#name, __VA_ARGS__},
constexpr LinkLossKind kLinkLosses[] = {ESPALIER_LINK_LOSSES(ESPALIER_KIND)};
#undef ESPALIER_KIND

}  // namespace

std::span<const LinkScoreKind> link_score_kinds() {
  return kLinkScores;
}

const LinkScoreKind& link_score_kind_of(const std::string& name, const std::string& what) {
  return entry_named(kLinkScores, name, what);
}

std::span<const LinkLossKind> link_loss_kinds() {
  return kLinkLosses;
}

const LinkLossKind& link_loss_kind_of(const std::string& name, const std::string& what) {
  return entry_named(kLinkLosses, name, what);
}

}  // namespace espalier
