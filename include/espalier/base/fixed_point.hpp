// Fixed-point sums: exact, so the same in any order, on any number of threads or ranks (design,
// 4.1 and 4.2).
//
// A set of floating-point numbers with a known bound 2^e > |x| and a known number of terms N is
// mapped to integers q = round(x * 2^s) with s = 62 - e - ceil(log2 N); then |sum of q| < 2^63 and
// integer addition is associative. Each term is off by at most 2^-(s+1), that is 2^-(63 - ceil(log2
// N)) relative to the bound.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "espalier/base/host_device.hpp"

namespace espalier {

/// s for which a sum of up to `terms` numbers |x| 2^s, none of them above `bound` > 0, stays below
/// 2^62: each is at most 2^(62 - ceil(log2 terms)).
ESPALIER_HD inline int shift_for_sum(double bound, std::int64_t terms) {
  int exponent = 0;
  std::frexp(bound, &exponent);  // bound < 2^exponent
  int log_terms = 0;
  while (log_terms < 62 && (std::int64_t{1} << log_terms) < terms) ++log_terms;
  return 62 - exponent - log_terms;
}

/// The scale of one fixed-point sum; the same on every rank that contributes to it.
class FixedPointScale {
 public:
  /// `bound`: the largest |x| over all terms everywhere (finite); `terms`: how many numbers are
  /// added, at most.
  ESPALIER_HD FixedPointScale(double bound, std::int64_t terms) {
    shift_ = bound > 0 ? shift_for_sum(bound, terms) : 0;
  }
  ESPALIER_HD std::int64_t to_fixed(double x) const { return std::llrint(std::ldexp(x, shift_)); }
  ESPALIER_HD double to_double(std::int64_t sum) const {
    return std::ldexp(static_cast<double>(sum), -shift_);
  }

 private:
  int shift_ = 0;
};

/// 2^exponent for -1022 <= exponent <= 1023.
ESPALIER_HD inline double power_of_two(int exponent) {
  return bit_cast<double>(static_cast<std::uint64_t>(1023 + exponent) << 52);
}

/// The integer weight of a weight: round(w * 2^shift), ties to even, at least 1 for any w > 0 so
/// that no support is lost. With shift = shift_for_sum(largest, n) n weights of float32 sum to 2^62
/// at most; from 2^-37 n of the largest on they are exact, below off by less than 2^-60 n of the
/// largest, so that a share of the sum is off by less than 2^-59 n^2.
ESPALIER_HD inline std::uint64_t fixed_point_weight(double weight, int shift) {
  const double scaled = weight * power_of_two(shift);  // exact
  // From 2^52 on a double is an integer; below, adding 2^52 rounds the fraction away.
  const double rounded = scaled < 0x1p52 ? (scaled + 0x1p52) - 0x1p52 : scaled;
  const double counted = rounded < 1.0 ? 1.0 : rounded;
  // No branch: weights come in vectors.
  return static_cast<std::uint64_t>(weight > 0 ? counted : 0.0);
}

}  // namespace espalier
