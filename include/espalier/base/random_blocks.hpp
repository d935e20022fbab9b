// Several blocks of random streams at once, bit for bit those of random_block (base/philox.hpp).
// The streams may differ in row, batch and, asked for so, key.
//
// A block is ten rounds of two 32 x 32 -> 64 bit products, each waiting for the one before. In
// lanes of 64 bits a product is one instruction that reads the low halves of its factors, so words
// stand in low halves, and what is left in the high ones is never cleared:
//
//     c0, c1, c2, c3  <-  high(m1 c2) ^ c1 ^ k0,  m1 c2,  high(m0 c0) ^ c3 ^ k1,  m0 c0
//
// Widths are a trait of the machine: eight lanes with AVX-512, four with AVX2, else one.
#pragma once

#include <cstdint>

#include "espalier/base/philox.hpp"

// nvcc ends on vectors of the C++ compiler.
#if defined(__AVX512F__) && !defined(__CUDACC__)
#define ESPALIER_WIDEST_LANES 8
#elif defined(__AVX2__) && !defined(__CUDACC__)
#define ESPALIER_WIDEST_LANES 4
#else
#define ESPALIER_WIDEST_LANES 1
#endif
#if ESPALIER_WIDEST_LANES > 1
#include <immintrin.h>
#endif

namespace espalier {

/// Sixteen fill two registers of the widest kind, and the latency of one hides behind the other.
inline constexpr int kBlocksAtOnce = 16;

struct BlockCounters {
  std::uint64_t block[kBlocksAtOnce] = {}, row[kBlocksAtOnce] = {},
                batch[kBlocksAtOnce] = {};  ///< block and batch: below 2^32
};

/// Of blocks of several keys.
struct BlockKeys {
  std::uint64_t low[kBlocksAtOnce] = {}, high[kBlocksAtOnce] = {};  ///< below 2^32
};

namespace random_lanes {

/// `type`: so many words; `product`: of the low halves.
template <int kLanes>
struct LanesOf;

#if ESPALIER_WIDEST_LANES >= 4
template <>
struct LanesOf<4> {
  typedef std::uint64_t type __attribute__((vector_size(32)));
  static type product(type x, type y) { return (type)_mm256_mul_epu32((__m256i)x, (__m256i)y); }
};
#endif
#if ESPALIER_WIDEST_LANES >= 8
template <>
struct LanesOf<8> {
  typedef std::uint64_t type __attribute__((vector_size(64)));
  // All lanes are asked for: without a mask GCC 12 warns of its own header (GCC bug 105593).
  static type product(type x, type y) { return (type)_mm512_maskz_mul_epu32(0xff, (__m512i)x, (__m512i)y); }
};
#endif

template <int kLanes>
using Lanes = typename LanesOf<kLanes>::type;

template <int kLanes>
Lanes<kLanes> every_lane(std::uint64_t x) {
  return Lanes<kLanes>{} + x;
}
template <int kLanes>
Lanes<kLanes> load(const std::uint64_t* from) {
  Lanes<kLanes> lanes;
  __builtin_memcpy(&lanes, from, sizeof lanes);
  return lanes;
}

/// The low halves of a, b, c, d, lane by lane one behind the other.
template <int kLanes>
void store(Lanes<kLanes> a, Lanes<kLanes> b, Lanes<kLanes> c, Lanes<kLanes> d, std::uint32_t* words) {
  const Lanes<kLanes> low = (a & 0xffffffffu) | b << 32, high = (c & 0xffffffffu) | d << 32;
  Lanes<kLanes> first = low, second = high;
  if constexpr (kLanes == 8) {
    const auto even = __builtin_shufflevector(low, high, 0, 8, 2, 10, 4, 12, 6, 14),
               odd = __builtin_shufflevector(low, high, 1, 9, 3, 11, 5, 13, 7, 15);
    first = __builtin_shufflevector(even, odd, 0, 1, 8, 9, 2, 3, 10, 11);
    second = __builtin_shufflevector(even, odd, 4, 5, 12, 13, 6, 7, 14, 15);
  } else if constexpr (kLanes == 4) {
    const auto even = __builtin_shufflevector(low, high, 0, 4, 2, 6),
               odd = __builtin_shufflevector(low, high, 1, 5, 3, 7);
    first = __builtin_shufflevector(even, odd, 0, 1, 4, 5);
    second = __builtin_shufflevector(even, odd, 2, 3, 6, 7);
  }
  __builtin_memcpy(words, &first, sizeof first);
  __builtin_memcpy(words + 2 * kLanes, &second, sizeof second);
}

struct OneKey {
  StreamKey key;
  StreamKey of(int) const { return key; }
  template <int kLanes>
  void load(int, Lanes<kLanes>& low, Lanes<kLanes>& high) const {
    low = every_lane<kLanes>(key.low), high = every_lane<kLanes>(key.high);
  }
};
struct SeveralKeys {
  const BlockKeys& keys;
  StreamKey of(int lane) const {
    return {static_cast<std::uint32_t>(keys.low[lane]), static_cast<std::uint32_t>(keys.high[lane])};
  }
  template <int kLanes>
  void load(int lane, Lanes<kLanes>& low, Lanes<kLanes>& high) const {
    low = random_lanes::load<kLanes>(keys.low + lane), high = random_lanes::load<kLanes>(keys.high + lane);
  }
};

/// Two registers of blocks on their way through the rounds.
template <int kLanes, class Key>
void two_registers(const BlockCounters& counters, int at, const Key& key, std::uint32_t* words) {
  constexpr int kTwo = 2;
  Lanes<kLanes> c0[kTwo], c1[kTwo], c2[kTwo], c3[kTwo], k0[kTwo], k1[kTwo];
  for (int r = 0; r < kTwo; ++r) {
    const int lane = at + r * kLanes;
    c0[r] = load<kLanes>(counters.row + lane);
    c1[r] = c0[r] >> 32;
    c2[r] = load<kLanes>(counters.batch + lane);
    c3[r] = load<kLanes>(counters.block + lane);
    key.template load<kLanes>(lane, k0[r], k1[r]);
  }
  const auto m0 = every_lane<kLanes>(PHILOX_M4x32_0), m1 = every_lane<kLanes>(PHILOX_M4x32_1);
  for (int round = 0; round < 10; ++round)
    for (int r = 0; r < kTwo; ++r) {
      const auto p0 = LanesOf<kLanes>::product(c0[r], m0), p1 = LanesOf<kLanes>::product(c2[r], m1);
      c0[r] = (p1 >> 32) ^ c1[r] ^ k0[r];
      c1[r] = p1;
      c2[r] = (p0 >> 32) ^ c3[r] ^ k1[r];
      c3[r] = p0;
      k0[r] += every_lane<kLanes>(PHILOX_W32_0);
      k1[r] += every_lane<kLanes>(PHILOX_W32_1);
    }
  for (int r = 0; r < kTwo; ++r) store<kLanes>(c0[r], c1[r], c2[r], c3[r], words + 4 * r * kLanes);
}

template <int kLanes, class Key>
void blocks(const BlockCounters& counters, const Key& key, std::uint32_t* words) {
  if constexpr (kLanes > 1) {
    for (int at = 0; at < kBlocksAtOnce; at += 2 * kLanes)
      two_registers<kLanes>(counters, at, key, words + 4 * at);
  } else {
    for (int k = 0; k < kBlocksAtOnce; ++k) {
      KeyedStream stream;
      stream.key = key.of(k);
      stream.row = counters.row[k];
      stream.batch = static_cast<std::uint32_t>(counters.batch[k]);
      const auto block = random_block(stream, counters.block[k]);
      __builtin_memcpy(words + 4 * k, block.v, sizeof block.v);
    }
  }
}

}  // namespace random_lanes

// Units that nvcc reads have others: they must not be one function.
#if ESPALIER_WIDEST_LANES == 8
inline namespace eight_lanes {
#elif ESPALIER_WIDEST_LANES == 4
inline namespace four_lanes {
#else
inline namespace one_lane {
#endif

/// words[4 k .. 4 k + 3] = block block[k] of the stream of a key with batch[k] and row[k].
inline void random_blocks(StreamKey key, const BlockCounters& counters, std::uint32_t* words) {
  random_lanes::blocks<ESPALIER_WIDEST_LANES>(counters, random_lanes::OneKey{key}, words);
}
/// The same with a key for each.
inline void random_blocks(const BlockKeys& keys, const BlockCounters& counters, std::uint32_t* words) {
  random_lanes::blocks<ESPALIER_WIDEST_LANES>(counters, random_lanes::SeveralKeys{keys}, words);
}

}  // inline namespace
}  // namespace espalier
