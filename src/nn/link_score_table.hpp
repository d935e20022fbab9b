// The table of scores. A new one is its rules (link_score_rules.hpp) and a line here.
#pragma once

#include <string_view>

#include "espalier/base/error.hpp"
#include "link_distances.hpp"
#include "link_products.hpp"

// clang-format off
//     name      rules, of norm 1   and of norm 2    norm?  angles? net?   is
#define ESPALIER_LINK_SCORES(score) \
  score(dot,      DotScore,         DotScore,        false, false,  false, "the product of two vertices' rows") \
  score(distmult, DistMultScore,    DistMultScore,   false, false,  false, "their product, weighed by the relation's row (Yang et al. 2015)") \
  score(complex,  ComplexScore,     ComplexScore,    false, false,  false, "the same of complex numbers (Trouillon et al. 2016)") \
  score(transe,   TransEScore<1>,   TransEScore<2>,  true,  false,  false, "the distance from the tail to the head that the relation moved (Bordes et al. 2013)") \
  score(rotate,   RotatEScore<1>,   RotatEScore<2>,  true,  true,   false, "the distance from the tail to the head that the relation turned (Sun et al. 2019)") \
  score(mlp,      DistMultScore,    DistMultScore,   false, false,  true,  "what a network with one hidden layer says of DistMult's products")
// clang-format on

namespace espalier {

/// Fails where rows are not as wide as a score takes them.
inline void check_link_widths(const LinkScore& score, std::int64_t width, std::int64_t relation_width) {
  const auto& kind = *score.kind;
  ESPALIER_CHECK(kind.takes_width(width), "rows of {} for {}", width, kind.name);
  ESPALIER_CHECK(kind.relation_numbers == 0 || relation_width == kind.relation_width(width),
                 "rows of {} and of {} for {}", width, relation_width, kind.name);
}

/// use(the rules of a score).
template <class Use>
void with_rules_of(const LinkScore& score, const Use& use) {
  const std::string_view name = score.kind->name;
#define ESPALIER_USE(kind, first, second, ...) \
  if (name == #kind) return score.norm == 2 ? use(second{}) : use(first{});
  ESPALIER_LINK_SCORES(ESPALIER_USE)
#undef ESPALIER_USE
}

}  // namespace espalier
