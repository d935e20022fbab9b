// Instructions that a GPU computes approximately (.approx): the correctly rounded value here, as
// far as double tells; with ESPALIER_PTX_APPROXIMATE=SEED in the environment its last bits are
// turned, by a hash of the seed and the operand, as far as the PTX ISA lets a GPU be wrong (section
// 9.7.3, each instruction's table). So a law of bits that leans on one of them breaks in the tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "floats.hpp"

namespace ptx {

/// Of ESPALIER_PTX_APPROXIMATE; 0 where it is not set.
extern const std::uint64_t seed_of_errors;

/// A number in [-1, 1], by the operand.
inline double turn_of(std::uint64_t operand) {
  std::uint64_t x = operand ^ seed_of_errors * 0x9e3779b97f4a7c15ull;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  return static_cast<double>(static_cast<std::int64_t>(x ^ x >> 31)) * 0x1p-63;
}
/// The distance of the floats about x: of its last place.
inline double last_place(double x) {
  return std::ldexp(1.0, std::max(std::ilogb(x) - 23, -149));
}
/// The float nearest to `exact`, or any that is not farther from it than `bound`.
inline float approximately(float operand, double exact, double bound) {
  const auto nearest = canonical(static_cast<float>(exact));
  if (seed_of_errors == 0 || !std::isfinite(exact) || exact == 0) return nearest;
  auto result = canonical(static_cast<float>(exact + turn_of(to_bits(operand)) * bound));
  while (result != nearest && std::fabs(static_cast<double>(result) - exact) > bound)
    result = std::nextafter(result, nearest);
  return result;
}
inline float relatively(float operand, double exact, double bound) {
  return approximately(operand, exact, std::fabs(exact) * bound);
}

inline float ex2_approximately(float x) {
  const double nearest = static_cast<float>(std::exp2(static_cast<double>(x)));
  return approximately(x, nearest, 2 * last_place(nearest));
}
inline float lg2_approximately(float x) {
  const double exact = std::log2(static_cast<double>(x));
  return x > 0.5f && x < 2.0f && x != 1.0f ? approximately(x, exact, 0x1p-22) : relatively(x, exact, 0x1p-22);
}
inline float rcp_approximately(float x) {
  const double exact = 1.0 / static_cast<double>(x);
  return approximately(x, exact, last_place(exact));
}
/// rcp.approx.ftz.f64: of the upper half of the operand; the lower half of the result is zero, and
/// subnormal numbers count as zeros. The ISA tells no bound.
inline double rcp_approximately(double x) {
  const auto operand = to_bits(x) & 0xffffffff00000000ull;
  if (is_nan(from_bits<double>(operand))) return from_bits<double>(0x7fffffff00000000ull);
  const auto flushed = [](double y) { return std::fabs(y) < 0x1p-1022 ? std::copysign(0.0, y) : y; };
  double exact = 1.0 / flushed(from_bits<double>(operand));
  if (seed_of_errors != 0 && std::isfinite(exact)) exact *= 1 + 0x1p-20 * turn_of(operand);
  return flushed(from_bits<double>((to_bits(exact) + 0x80000000ull) & 0xffffffff00000000ull));
}
inline float rsqrt_approximately(float x) {
  return relatively(x, 1.0 / std::sqrt(static_cast<double>(x)), 1.277e-7);  // 2^-22.9
}
inline float sqrt_approximately(float x) {
  return relatively(x, std::sqrt(static_cast<double>(x)), 0x1p-23);
}
inline float sin_approximately(float x) {
  return approximately(x, std::sin(static_cast<double>(x)), 6.74e-7);  // 2^-20.5
}
inline float cos_approximately(float x) {
  return approximately(x, std::cos(static_cast<double>(x)), 6.74e-7);
}
inline float tanh_approximately(float x) {
  return relatively(x, std::tanh(static_cast<double>(x)), 0x1p-11);
}

}  // namespace ptx
