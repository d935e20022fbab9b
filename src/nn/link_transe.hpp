// TransE (Bordes et al. 2013): a relation moves the head to the tail.
//
//     score = -||h + r - t||        of norm 1 or 2
#pragma once

#include <cmath>

#include "link_score_rules.hpp"

namespace espalier {

/// What is said of a sum of lengths, or of squares of lengths.
template <int kNorm>
struct DistanceScore {
  static ESPALIER_HD double score(double sum) { return kNorm == 1 ? -sum : -std::sqrt(sum); }
  /// Of norm 2 the differences are divided by the distance.
  static ESPALIER_HD double outer(double score) { return kNorm == 1 ? -1.0 : score == 0 ? 0.0 : 1 / score; }
};

template <int kNorm>
struct TransEScore : DistanceScore<kNorm> {
  static constexpr int kNumbers = 1, kRelationNumbers = 1;
  static constexpr bool kRotations = false;

  static ESPALIER_HD double difference(const LinkRows& x, std::int64_t j) { return x.h(j) + x.r(j) - x.t(j); }
  static ESPALIER_HD double term(const LinkRows& x, std::int64_t j) {
    const double d = difference(x, j);
    return kNorm == 2 ? d * d : d < 0 ? -d : d;
  }
  template <LinkRow kRow, int kPart>
  static ESPALIER_HD double slope(const LinkRows& x, std::int64_t j) {
    const double d = difference(x, j), forth = kNorm == 2 ? d : d > 0 ? 1.0 : d < 0 ? -1.0 : 0.0;
    return kRow == LinkRow::kTail ? -forth : forth;
  }
};

}  // namespace espalier
