// float16 (IEEE binary16) and bfloat16 storage for features: half the bytes in memory and on the
// wire; arithmetic is float32.
#pragma once

#include <cstdint>

#include "espalier/base/host_device.hpp"

namespace espalier {

/// The 16 bits of an IEEE binary16 number.
struct Half {
  std::uint16_t bits = 0;
};

/// The upper 16 bits of a float32 number: its range, with 7 bits of mantissa.
struct BFloat16 {
  std::uint16_t bits = 0;
};

ESPALIER_HD inline float to_float(float x) {
  return x;
}

/// Exact: every binary16 number is a float32 number.
ESPALIER_HD inline float to_float(Half h) {
#if defined(__CUDA_ARCH__)
  float x;  // the processor's own conversion
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h.bits));
  return x;
#else
  const std::uint32_t sign = static_cast<std::uint32_t>(h.bits & 0x8000u) << 16;
  const std::uint32_t magnitude = h.bits & 0x7fffu;
  if (magnitude >= 0x7c00u) return bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
  // Placing the bits as a float32 scales the number by 2^-112; multiplying back also makes
  // subnormals right.
  const float scaled = bit_cast<float>(magnitude << 13) * 0x1.0p112f;
  return bit_cast<float>(sign | bit_cast<std::uint32_t>(scaled));
#endif
}

/// Exact.
ESPALIER_HD inline float to_float(BFloat16 b) {
  return bit_cast<float>(static_cast<std::uint32_t>(b.bits) << 16);
}

/// to[k] = from[k] for k < count, with the processor's own conversion (exact as well) where
/// it has one.
inline void to_floats(const Half* from, float* to, std::int64_t count) {
  std::int64_t k = 0;
#if defined(__F16C__)
  // Not by <immintrin.h>, which half of the source would have to read for this.
  typedef short EightHalves __attribute__((vector_size(16)));
  for (; k + 8 <= count; k += 8) {
    EightHalves halves;
    __builtin_memcpy(&halves, from + k, sizeof halves);
    const auto eight = __builtin_ia32_vcvtph2ps256(halves);
    __builtin_memcpy(to + k, &eight, sizeof eight);
  }
#endif
  for (; k < count; ++k) to[k] = to_float(from[k]);
}

template <class T>
void to_floats(const T* from, float* to, std::int64_t count) {
  for (std::int64_t k = 0; k < count; ++k) to[k] = to_float(from[k]);
}

/// Rounds to nearest, ties to even; beyond 65504 gives infinity.
ESPALIER_HD inline Half to_half(float x) {
  const auto bits = bit_cast<std::uint32_t>(x);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  // Not a number.
  if (magnitude > 0x7f800000u) return {static_cast<std::uint16_t>(sign | 0x7e00u)};
  // Rounds to infinity.
  if (magnitude >= 0x477ff000u) return {static_cast<std::uint16_t>(sign | 0x7c00u)};
  if (magnitude < 0x38800000u) {
    // Subnormal in binary16: adding 0.5 aligns the last kept bit with 2^-24.
    const auto aligned = bit_cast<std::uint32_t>(bit_cast<float>(magnitude) + 0.5f);
    return {static_cast<std::uint16_t>(sign | (aligned - 0x3f000000u))};
  }
  const std::uint32_t odd = (magnitude >> 13) & 1u;
  return {static_cast<std::uint16_t>(sign | ((magnitude + 0xfffu + odd - 0x38000000u) >> 13))};
}

/// Rounds to nearest, ties to even; beyond the largest number gives infinity.
ESPALIER_HD inline BFloat16 to_bfloat16(float x) {
  const auto bits = bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return {static_cast<std::uint16_t>((bits >> 16) | 0x40u)};  // not a number
  const std::uint32_t odd = (bits >> 16) & 1u;
  return {static_cast<std::uint16_t>((bits + 0x7fffu + odd) >> 16)};
}

}  // namespace espalier
