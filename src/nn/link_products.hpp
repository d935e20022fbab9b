// Scores that are products of the rows of a link.
#pragma once

#include "link_score_rules.hpp"

namespace espalier {

/// The product of two vertices' rows, which knows no relation:
///
///     score = sum over j of h_j t_j
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

/// DistMult (Yang et al. 2015): a product that a relation weighs, the same for a link and its
/// reverse.
///
///     score = sum over j of h_j r_j t_j
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

/// ComplEx (Trouillon et al. 2016): DistMult over complex numbers, which tells a link from its
/// reverse.
///
///     score = Re sum over j of h_j r_j conj(t_j)
struct ComplexScore {
  static constexpr int kNumbers = 2, kRelationNumbers = 2;
  static constexpr bool kRotations = false;

  static ESPALIER_HD double term(const LinkRows& x, std::int64_t j) {
    return slope<LinkRow::kTail, 0>(x, j) * x.t(j) + slope<LinkRow::kTail, 1>(x, j) * x.t_imaginary(j);
  }
  static ESPALIER_HD double score(double sum) { return sum; }
  static ESPALIER_HD double outer(double) { return 1; }
  template <LinkRow kRow, int kPart>
  static ESPALIER_HD double slope(const LinkRows& x, std::int64_t j) {
    if constexpr (kRow == LinkRow::kTail)  // h r
      return kPart == 0 ? x.h(j) * x.r(j) - x.h_imaginary(j) * x.r_imaginary(j)
                        : x.h(j) * x.r_imaginary(j) + x.h_imaginary(j) * x.r(j);
    else if constexpr (kRow == LinkRow::kHead)  // conj(r) t
      return kPart == 0 ? x.r(j) * x.t(j) + x.r_imaginary(j) * x.t_imaginary(j)
                        : x.r(j) * x.t_imaginary(j) - x.r_imaginary(j) * x.t(j);
    else  // conj(h) t
      return kPart == 0 ? x.h(j) * x.t(j) + x.h_imaginary(j) * x.t_imaginary(j)
                        : x.h(j) * x.t_imaginary(j) - x.h_imaginary(j) * x.t(j);
  }
};

}  // namespace espalier
