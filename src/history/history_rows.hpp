// How a row of float32 is kept in words of 32 bits, element by element; the same on CPU and GPU.
//
//     kFloat32   a word for each element
//     kFloat16   two elements in a word, the first in the lower half
//     kUint8     lo, hi as float32; then four elements in a word, the first in the lowest byte
#pragma once

#include <cstdint>

#include "espalier/base/half.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/history/history_cache.hpp"

namespace espalier {

/// What the bytes of a row span: 0 lies within. hi is no number where an element is none, or
/// infinite.
struct ByteScale {
  float lo = 0, hi = 0;

  ESPALIER_HD void take(float x) {
    if (x < lo) lo = x;
    if (x > hi) hi = x;
    if (!(x - x == 0)) hi = bit_cast<float>(0x7fc00000u);  // and nothing is more than that
  }
  /// Of two parts of a row.
  ESPALIER_HD void take(const ByteScale& other) {
    if (other.lo < lo) lo = other.lo;
    if (other.hi > hi || other.hi != other.hi) hi = other.hi;
  }
};

/// 0 .. 255: the nearest, of two the upper.
ESPALIER_HD inline std::uint32_t to_byte(float x, const ByteScale& scale) {
  const double lo = scale.lo, range = scale.hi - lo;
  if (!(range > 0)) return 0;
  return static_cast<std::uint32_t>((static_cast<double>(x) - lo) * 255.0 / range + 0.5);
}

ESPALIER_HD inline float from_byte(std::uint32_t q, const ByteScale& scale) {
  const double lo = scale.lo, range = scale.hi - lo;
  return static_cast<float>(lo + static_cast<double>(q) * range / 255.0);
}

/// Word w of a row; the scale's two words, of kUint8, too.
template <HistoryPrecision kPrecision>
ESPALIER_HD inline std::uint32_t kept_word(const float* row, std::int64_t width, const ByteScale& scale,
                                           std::int64_t w) {
  if constexpr (kPrecision == HistoryPrecision::kFloat32) {
    return bit_cast<std::uint32_t>(row[w]);
  } else if constexpr (kPrecision == HistoryPrecision::kFloat16) {
    const std::uint32_t low = to_half(row[2 * w]).bits;
    return 2 * w + 1 < width ? low | static_cast<std::uint32_t>(to_half(row[2 * w + 1]).bits) << 16 : low;
  } else {
    if (w == 0) return bit_cast<std::uint32_t>(scale.lo);
    if (w == 1) return bit_cast<std::uint32_t>(scale.hi);
    std::uint32_t word = 0;
    for (std::int64_t k = 0, j = 4 * (w - 2); k < 4 && j + k < width; ++k)
      word |= to_byte(row[j + k], scale) << (8 * k);
    return word;
  }
}

/// Element j of a row that is kept.
template <HistoryPrecision kPrecision>
ESPALIER_HD inline float kept_element(const std::uint32_t* words, std::int64_t j) {
  if constexpr (kPrecision == HistoryPrecision::kFloat32) {
    return bit_cast<float>(words[j]);
  } else if constexpr (kPrecision == HistoryPrecision::kFloat16) {
    return to_float(Half{static_cast<std::uint16_t>(words[j / 2] >> (16 * (j % 2)))});
  } else {
    const ByteScale scale = {bit_cast<float>(words[0]), bit_cast<float>(words[1])};
    return from_byte((words[2 + j / 4] >> (8 * (j % 4))) & 0xffu, scale);
  }
}

/// use.template operator()<kPrecision>().
template <class Use>
void with_precision(HistoryPrecision precision, const Use& use) {
  switch (precision) {
    case HistoryPrecision::kFloat32:
      return use.template operator()<HistoryPrecision::kFloat32>();
    case HistoryPrecision::kFloat16:
      return use.template operator()<HistoryPrecision::kFloat16>();
    case HistoryPrecision::kUint8:
      return use.template operator()<HistoryPrecision::kUint8>();
  }
}

}  // namespace espalier
