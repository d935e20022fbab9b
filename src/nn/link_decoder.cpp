#include "link_decoder.inl.hpp"

#include "espalier/base/named.hpp"
#include "link_loss_rules.hpp"
#include "link_score_table.hpp"

namespace espalier {

std::vector<TensorShape> link_tensors(const LinkScore& score, std::int64_t relations, std::int64_t width) {
  const auto& kind = *score.kind;
  const auto columns = kind.relation_width(width);
  if (columns == 0) return {};
  const auto start = kind.has_angles ? Start::kAngle : kind.has_network ? Start::kOne : Start::kGlorot;
  std::vector<TensorShape> tensors{{"relations", relations, columns, start, relations, true}};
  if (kind.has_network)
    tensors.insert(tensors.end(), {{"hidden", width, width},
                                   {"hidden_bias", 1, width, Start::kZero},
                                   {"output", width, 1},
                                   {"output_bias", 1, 1, Start::kZero}});
  return tensors;
}

std::int64_t link_network_numbers(const LinkScore& score, std::int64_t width) {
  return score.kind->has_network ? 3 * width : 0;
}

template std::unique_ptr<LinkDecoder<Cpu>> make_link_decoder(const Cpu&, const LinkScore&);

// What the program knows of scores and losses of links; the tables are in link_score_table.hpp and
// link_loss_rules.hpp.

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
