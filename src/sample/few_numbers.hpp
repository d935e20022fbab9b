// Copies and fills of a few numbers, mostly sixteen or less: one masked store where the processor
// has it, instead of a loop whose end no processor foresees.
#pragma once

#include <algorithm>
#include <cstdint>

#if defined(__AVX512F__) && defined(__BMI2__)
#include <immintrin.h>
#define ESPALIER_MASKED_STORES 1
#else
#define ESPALIER_MASKED_STORES 0
#endif

namespace espalier {

#if ESPALIER_MASKED_STORES
/// Of sixteen lanes those of the next `left` numbers.
inline __mmask16 lanes_of(std::int64_t left) {
  return static_cast<__mmask16>(_bzhi_u32(0xffff, static_cast<unsigned>(std::min<std::int64_t>(left, 16))));
}
#endif

/// to[k] = from[k] for k < count; returns the place behind them.
template <class Number>
Number* copy_few(const Number* from, std::int64_t count, Number* to) {
#if ESPALIER_MASKED_STORES
  if constexpr (sizeof(Number) == 4) {
    for (std::int64_t k = 0; k < count; k += 16)
      _mm512_mask_storeu_epi32(to + k, lanes_of(count - k),
                               _mm512_maskz_loadu_epi32(lanes_of(count - k), from + k));
    return to + count;
  }
#endif
  return std::copy(from, from + count, to);
}

/// to[k] = value for k < count.
inline void fill_few(float* to, std::int64_t count, float value) {
#if ESPALIER_MASKED_STORES
  for (std::int64_t k = 0; k < count; k += 16)
    _mm512_mask_storeu_ps(to + k, lanes_of(count - k), _mm512_set1_ps(value));
#else
  std::fill(to, to + count, value);
#endif
}

}  // namespace espalier
