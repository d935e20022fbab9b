// Marks the inline functions that the CPU and the GPU share: the arithmetic of one row or one
// element lives in headers that a plain C++ compiler reads too, so the CPU tests check what the
// GPU will run. And what such functions call in place of the standard library: bit_cast, a hash of
// 64 bits, binary searches.
#pragma once

#include <cstdint>
#include <type_traits>

#if defined(__CUDACC__)
#define ESPALIER_HD __host__ __device__
#else
#define ESPALIER_HD
#endif

namespace espalier {

// std::bit_cast for functions that the CPU and the GPU share: that of the standard library is the
// host's alone, and nvcc refuses it in device code.

/// The value of To that has the bits of `from`.
template <class To, class From>
ESPALIER_HD constexpr To bit_cast(const From& from) noexcept {
  static_assert(sizeof(To) == sizeof(From) && std::is_trivially_copyable_v<To> &&
                std::is_trivially_copyable_v<From>);
  return __builtin_bit_cast(To, from);
}

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection of 64 bits in which every
// input bit flips every output bit with probability near one half. Digests of samples and of files
// are sums of it.

ESPALIER_HD inline std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// `state` after one more word.
ESPALIER_HD inline std::uint64_t absorb(std::uint64_t state, std::int64_t word) {
  return mix(state ^ static_cast<std::uint64_t>(word));
}

// Binary searches of ascending lists, the same on CPU and GPU.

/// How many of the ascending values sorted[0 .. count) are less than `bound`.
template <class T>
ESPALIER_HD inline std::int64_t count_below(const T* sorted, std::int64_t count, T bound) {
  std::int64_t begin = 0;
  while (count > 0) {
    const std::int64_t half = count / 2;
    const bool below = sorted[begin + half] < bound;
    begin = below ? begin + half + 1 : begin;
    count = below ? count - half - 1 : half;
  }
  return begin;
}

/// The segment that `item` lies in: segment s has the items offsets[s] .. offsets[s+1], and empty
/// ones are passed over. offsets [segments + 1], anything with operator[], ascends from at most
/// `item` to more than `item`.
template <class Offsets, class Item>
ESPALIER_HD inline std::int64_t segment_of(const Offsets& offsets, std::int64_t segments, Item item) {
  std::int64_t low = 0, high = segments;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    if (offsets[middle] <= item)
      low = middle;
    else
      high = middle;
  }
  return low;
}

}  // namespace espalier
