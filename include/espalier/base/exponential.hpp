// exp(x) and exp(x) - 1 of numbers that are not positive, without calls and branches, so that
// compilers make vectors of them; the same bits on CPU and GPU where products and sums are rounded
// by themselves. float32: at most 2 units in the last place from the exact result; below -87, where
// exp(x) is no normal number, 0 and -1. NaN stays.
//
//     x = k ln 2 + r, |r| <= ln 2 / 2     exp(x) - 1 = 2^k (exp(r) - 1) + (2^k - 1)
//
// with the Taylor polynomial of exp(r) - 1 up to r^8. double: the library's functions.
#pragma once

#include <cmath>
#include <cstdint>

#include "espalier/base/host_device.hpp"

namespace espalier {

namespace exponential {

/// 2^k, and exp(r) - 1.
struct Parts {
  float power, rest;
};

ESPALIER_HD inline Parts parts_of(float x) {
  constexpr float kShift = 12582912.0f;  // 1.5 * 2^23: adding it rounds to whole numbers
  const float bounded = x < -87.0f ? -87.0f : x;
  const float shifted = bounded * 1.44269504f + kShift, k = shifted - kShift;
  // ln 2 in two parts, the first with few digits, so that k times it is exact.
  const float r = (bounded - k * 0.693359375f) - k * -2.12194440e-4f;
  float p = 1.0f / 40320;
  p = p * r + 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = r + r * r * p;
  // The lowest bits of `shifted` are k.
  std::int32_t bits;
  static_assert(sizeof bits == sizeof shifted);
  __builtin_memcpy(&bits, &shifted, sizeof bits);
  const std::int32_t exponent = (bits + 127) << 23;
  float power;
  __builtin_memcpy(&power, &exponent, sizeof power);
  return {power, p};
}

}  // namespace exponential

/// exp(x) for x <= 0.
ESPALIER_HD inline float exp_of_nonpositive(float x) {
  const auto [power, rest] = exponential::parts_of(x);
  return x < -87.0f ? 0.0f : power + power * rest;
}
inline double exp_of_nonpositive(double x) {
  return std::exp(x);
}

/// exp(x) - 1 for x <= 0.
ESPALIER_HD inline float expm1_of_nonpositive(float x) {
  const auto [power, rest] = exponential::parts_of(x);
  return x < -87.0f ? -1.0f : power * rest + (power - 1.0f);
}
inline double expm1_of_nonpositive(double x) {
  return std::expm1(x);
}

}  // namespace espalier
