// Scores that are distances, of norm 1 or 2, from the tail to where the relation brings the head.
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

/// TransE (Bordes et al. 2013): a relation moves the head to the tail.
///
///     score = -||h + r - t||        of norm 1 or 2
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

/// RotatE (Sun et al. 2019): a relation turns each complex number of the head. Its row has the
/// angles.
///
///     score = -||h e^(i r) - t||
///
/// Norm 1 adds the moduli of the complex differences, as the authors' program does; norm 2 is the
/// root of the sum of their squares, as PyKEEN and PyTorch Geometric have it.
template <int kNorm>
struct RotatEScore : DistanceScore<kNorm> {
  static constexpr int kNumbers = 2, kRelationNumbers = 1;
  static constexpr bool kRotations = true;

  struct Number {
    double real, imaginary;
    ESPALIER_HD double square() const { return real * real + imaginary * imaginary; }
  };

  static ESPALIER_HD Number rotated(const LinkRows& x, std::int64_t j) {
    const double cosine = x.cosine(j), sine = x.sine(j);
    return {x.h(j) * cosine - x.h_imaginary(j) * sine, x.h(j) * sine + x.h_imaginary(j) * cosine};
  }
  static ESPALIER_HD Number difference(const Number& from, const LinkRows& x, std::int64_t j) {
    return {from.real - x.t(j), from.imaginary - x.t_imaginary(j)};
  }
  static ESPALIER_HD double term(const LinkRows& x, std::int64_t j) {
    const double square = difference(rotated(x, j), x, j).square();
    return kNorm == 1 ? std::sqrt(square) : square;
  }
  template <LinkRow kRow, int kPart>
  static ESPALIER_HD double slope(const LinkRows& x, std::int64_t j) {
    const Number from = rotated(x, j), d = difference(from, x, j);
    const double square = d.square(), by = kNorm == 2 ? 1.0 : square == 0 ? 0.0 : 1 / std::sqrt(square);
    const double cosine = x.cosine(j), sine = x.sine(j);
    if constexpr (kRow == LinkRow::kTail)
      return kPart == 0 ? -(d.real * by) : -(d.imaginary * by);
    else if constexpr (kRow == LinkRow::kHead)
      return (kPart == 0 ? d.real * cosine + d.imaginary * sine : d.imaginary * cosine - d.real * sine) * by;
    else
      return (d.imaginary * from.real - d.real * from.imaginary) * by;
  }
};

}  // namespace espalier
