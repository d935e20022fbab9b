// The product of two vertices' rows, which knows no relation:
//
//     score = sum over j of h_j t_j
#pragma once

#include "link_score_rules.hpp"

namespace espalier {

struct DotScore {
  static constexpr int kNumbers = 1, kRelationNumbers = 0;
  static constexpr bool kRotations = false;

  static ESPALIER_HD double term(const LinkRows& x, std::int64_t j) { return x.h(j) * x.t(j); }
  static ESPALIER_HD double score(double sum) { return sum; }
  static ESPALIER_HD double outer(double) { return 1; }
  template <LinkRow kRow, int kPart>
  static ESPALIER_HD double slope(const LinkRows& x, std::int64_t j) {
    return kRow == LinkRow::kHead ? x.t(j) : x.h(j);
  }
};

}  // namespace espalier
