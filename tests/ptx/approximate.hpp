// Instructions that a GPU computes approximately (.approx): the correctly rounded value here, as
// far as double tells; with ESPALIER_PTX_APPROXIMATE=SEED in the environment its last bits are
// turned, by a hash of the seed and the operand, as far as the PTX ISA lets a GPU be wrong (section
// 9.7.3, each instruction's table). So a law of bits that leans on one of them breaks in the tests.
#pragma once

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
/// `exact`, rounded, or wrong by up to `bound` of it, or `absolute`.
inline float approximately(float operand, double exact, double bound, double absolute = 0) {
  if (seed_of_errors == 0 || !std::isfinite(exact)) return canonical(static_cast<float>(exact));
  const double turn = turn_of(to_bits(operand));
  return canonical(static_cast<float>(exact + turn * (absolute > 0 ? absolute : std::fabs(exact) * bound)));
}

inline float ex2_approximately(float x) {
  return approximately(x, std::exp2(static_cast<double>(x)), 0x1p-22);
}
inline float lg2_approximately(float x) {
  const bool near_one = x >= 0.5f && x <= 2.0f;
  return approximately(x, std::log2(static_cast<double>(x)), 0x1p-22, near_one && x != 1.0f ? 0x1p-22 : 0);
}
inline float rcp_approximately(float x) {
  return approximately(x, 1.0 / static_cast<double>(x), 0x1p-23);
}
/// rcp.approx.ftz.f64: of the upper half of the operand; the lower half of the result is zero.
inline double rcp_approximately(double x) {
  constexpr std::uint64_t kUpper = 0xffffffff00000000ull;
  const auto operand = to_bits(x) & kUpper;
  double exact = 1.0 / from_bits<double>(operand);
  if (seed_of_errors != 0 && std::isfinite(exact)) exact *= 1 + 0x1p-20 * turn_of(operand);
  return from_bits<double>(to_bits(exact) & kUpper);
}
inline float rsqrt_approximately(float x) {
  return approximately(x, 1.0 / std::sqrt(static_cast<double>(x)), 1.3e-7);
}
inline float sqrt_approximately(float x) {
  return approximately(x, std::sqrt(static_cast<double>(x)), 0x1p-23);
}
inline float sin_approximately(float x) {
  return approximately(x, std::sin(static_cast<double>(x)), 0, 6.7e-7);
}
inline float cos_approximately(float x) {
  return approximately(x, std::cos(static_cast<double>(x)), 0, 6.7e-7);
}
inline float tanh_approximately(float x) {
  return approximately(x, std::tanh(static_cast<double>(x)), 0x1p-11);
}

}  // namespace ptx
