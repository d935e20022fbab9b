// Elementary functions in products, sums and quotients alone, without calls and, but for powers,
// branches: compilers make vectors of them, and the bits are the same on every processor, with
// every C library and on GPUs. (glibc's exp, log, pow and erf give other last bits where a
// processor has fused operations, and in other versions.)
//
// Exponentials of numbers that are not positive, in float32 within 2 units in the last place of
// the exact result, in double within 3; where exp(x) would be no normal number they are 0 and -1;
// NaN stays.
//
//     x = k ln 2 + r, |r| <= ln 2 / 2     exp(x) - 1 = 2^k (exp(r) - 1) + (2^k - 1)
//
// with the Taylor polynomial of exp(r) - 1.
#pragma once

#include <cstdint>

#include "espalier/base/host_device.hpp"

namespace espalier {

/// c0 + x (c1 + x (c2 + ..)).
template <class T>
ESPALIER_HD constexpr T horner(T, T last) {
  return last;
}
template <class T, class... More>
ESPALIER_HD constexpr T horner(T x, T first, More... more) {
  return first + x * horner(x, static_cast<T>(more)...);
}

namespace elementary {

/// 2^k, and exp(r) - 1.
template <class T>
struct Parts {
  T power, rest;
};

/// The least x whose exponential is a normal number.
ESPALIER_HD constexpr float least(float) {
  return -87.0f;
}
ESPALIER_HD constexpr double least(double) {
  return -708.0;
}

ESPALIER_HD inline Parts<float> parts_of(float x) {
  constexpr float kShift = 12582912.0f;  // 1.5 * 2^23: adding it rounds to whole numbers
  const float bounded = x < least(x) ? least(x) : x;
  const float shifted = bounded * 1.44269504f + kShift, k = shifted - kShift;
  // ln 2 in two parts, the first with few digits, so that k times it is exact.
  const float r = (bounded - k * 0.693359375f) - k * -2.12194440e-4f;
  const float p = horner(r, 0.5f, 1.0f / 6, 1.0f / 24, 1.0f / 120, 1.0f / 720, 1.0f / 5040, 1.0f / 40320);
  // The lowest bits of `shifted` are k.
  return {bit_cast<float>((bit_cast<std::uint32_t>(shifted) + 127) << 23), r + r * r * p};
}

ESPALIER_HD inline Parts<double> parts_of(double x) {
  constexpr double kShift = 0x1.8p52;
  const double bounded = x < least(x) ? least(x) : x;
  const double shifted = bounded * 0x1.71547652b82fep0 + kShift, k = shifted - kShift;
  const double r = (bounded - k * 0x1.62e42feep-1) - k * 0x1.a39ef35793c76p-33;
  const double p = horner(r, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320,
                          1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800);
  return {bit_cast<double>((bit_cast<std::uint64_t>(shifted) + 1023) << 52), r + r * r * p};
}

/// 2 atanh(s) / s = 2 (1 + s^2 / 3 + s^4 / 5 + ..), for |s| <= 1 / 3.
ESPALIER_HD inline double atanh_series(double s2) {
  return 2 * horner(s2, 1.0, 1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17,
                    1.0 / 19, 1.0 / 21, 1.0 / 23, 1.0 / 25, 1.0 / 27, 1.0 / 29, 1.0 / 31, 1.0 / 33);
}

}  // namespace elementary

/// exp(x) for x <= 0.
template <class T>
ESPALIER_HD inline T exp_of_nonpositive(T x) {
  const auto [power, rest] = elementary::parts_of(x);
  return x < elementary::least(x) ? T{0} : power + power * rest;
}

/// exp(x) - 1 for x <= 0.
template <class T>
ESPALIER_HD inline T expm1_of_nonpositive(T x) {
  const auto [power, rest] = elementary::parts_of(x);
  return x < elementary::least(x) ? T{-1} : power * rest + (power - T{1});
}

/// log(1 + x) for 0 <= x <= 1, within 3 units in the last place: 2 atanh(x / (2 + x)).
ESPALIER_HD inline double log1p_of_fraction(double x) {
  const double s = x / (2 + x);
  return s * elementary::atanh_series(s * s);
}

/// log(x) for positive normal numbers, within 3 units in the last place: x = 2^k m with
/// m in [2/3, 4/3), log x = k ln 2 + 2 atanh((m - 1) / (m + 1)). NaN and infinity stay.
ESPALIER_HD inline double log_of_positive(double x) {
  constexpr std::uint64_t kTwoThirds = 0x3fe5555555555555;
  const auto bits = bit_cast<std::uint64_t>(x);
  if (bits >= 0x7ff0000000000000) return x;
  const auto k = static_cast<std::int64_t>(bits - kTwoThirds) >> 52;
  const double m = bit_cast<double>(bits - (static_cast<std::uint64_t>(k) << 52)),
               of_power = static_cast<double>(k);
  const double s = (m - 1) / (m + 1);
  return of_power * 0x1.62e42feep-1 +
         (s * elementary::atanh_series(s * s) + of_power * 0x1.a39ef35793c76p-33);
}

struct SineAndCosine {
  double sine, cosine;
};

/// sin(x) and cos(x) for |x| <= 2^20, each within 3 units in the last place; beyond, those of 2^20
/// or -2^20; NaN stays.
///
///     x = k pi / 2 + r, |r| <= pi / 4
///
/// with the Taylor polynomials of r, whose places k modulo 4 exchanges and whose signs it turns.
ESPALIER_HD inline SineAndCosine sine_and_cosine(double x) {
  constexpr double kShift = 0x1.8p52, kMost = 0x1p20;
  const double below = x > kMost ? kMost : x, bounded = below < -kMost ? -kMost : below;
  const double shifted = bounded * 0x1.45f306dc9c883p-1 + kShift, k = shifted - kShift;
  // pi / 2 in three parts, the first two with few digits, so that k times them is exact.
  const double r = ((bounded - k * 0x1.921fb544p0) - k * 0x1.0b4611a6p-34) - k * 0x1.3198a2e037073p-69;
  const double r2 = r * r;
  const double of_sine = horner(r2, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800,
                                1.0 / 6227020800, -1.0 / 1307674368000, 1.0 / 355687428096000);
  const double of_cosine = horner(r2, 1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800, 1.0 / 479001600,
                                  -1.0 / 87178291200, 1.0 / 20922789888000);
  const double s = r + r * (r2 * of_sine), c = (1 - r2 / 2) + r2 * r2 * of_cosine;
  const auto quarter = bit_cast<std::uint64_t>(shifted);  // its lowest bits are k
  const bool odd = (quarter & 1) != 0;
  const double sine = odd ? c : s, cosine = odd ? s : c;
  return {(quarter & 2) != 0 ? -sine : sine, ((quarter + 1) & 2) != 0 ? -cosine : cosine};
}

/// x^n for n >= 0, by squares.
constexpr double power_of(double x, std::int64_t n) {
  double power = 1;
  for (; n > 0; n /= 2, x *= x)
    if (n % 2 == 1) power *= x;
  return power;
}

/// cos(pi x) for 0 <= x <= 1, off by less than 1e-15.
constexpr double cosine_of_turn(double x) {
  const double y = 3.14159265358979323846 * (x > 0.5 ? 1 - x : x), y2 = -y * y;
  double term = 1, sum = 0;
  for (int n = 0; n <= 26; n += 2) {
    sum += term;
    term *= y2 / ((n + 1) * (n + 2));
  }
  return x > 0.5 ? -sum : sum;
}

}  // namespace espalier
