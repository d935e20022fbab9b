// DistMult (Yang et al. 2015): a product that a relation weighs, the same for a link and its
// reverse.
//
//     score = sum over j of h_j r_j t_j
#pragma once

#include "link_score_rules.hpp"

namespace espalier {

struct DistMultScore {
  static constexpr int kNumbers = 1, kRelationNumbers = 1;
  static constexpr bool kRotations = false;

  static ESPALIER_HD double term(const LinkRows& x, std::int64_t j) { return x.h(j) * x.r(j) * x.t(j); }
  static ESPALIER_HD double score(double sum) { return sum; }
  static ESPALIER_HD double outer(double) { return 1; }
  template <LinkRow kRow, int kPart>
  static ESPALIER_HD double slope(const LinkRows& x, std::int64_t j) {
    return kRow == LinkRow::kHead       ? x.r(j) * x.t(j)
           : kRow == LinkRow::kRelation ? x.h(j) * x.t(j)
                                        : x.h(j) * x.r(j);
  }
};

}  // namespace espalier
