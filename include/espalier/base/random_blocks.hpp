// Several blocks of random streams at once, bit for bit those of random_block (base/philox.hpp).
// The streams may differ in row, batch and layer.
//
// A block is ten rounds of two 64 x 64 -> 128 bit products, each waiting for the one before. With
// AVX-512 eight blocks go through the rounds in the lanes of a register. The high half of a product
// x m is put together from the parts x = 2^52 x1 + x0, m = 2^52 m1 + m0 by the processor's 52-bit
// multiply-add (IFMA):
//
//     s = high(x0 m0) + low(x0 m1) + low(x1 m0)      counts 2^52; below 2^54, so nothing is lost
//     t = low(x1 m1) + high(x0 m1) + high(x1 m0)     counts 2^104
//     high 64 bits = floor(s / 2^12) + 2^40 t        the low 52 bits of x0 m0 cannot carry into s
#pragma once

#include <cstdint>
#include <type_traits>

#include "espalier/base/philox.hpp"

#if defined(__AVX512IFMA__) && defined(__AVX512DQ__)
#include <immintrin.h>
#endif

namespace espalier {

/// Sixteen fill two registers of the widest kind, and the latency of one hides behind the other.
inline constexpr int kBlocksAtOnce = 16;

struct BlockKeys {
  std::uint64_t block[kBlocksAtOnce] = {}, row[kBlocksAtOnce] = {}, batch[kBlocksAtOnce] = {},
                layer[kBlocksAtOnce] = {};  ///< bits beside those of the stream's
};

#if defined(__AVX512IFMA__) && defined(__AVX512DQ__)

typedef std::uint64_t BlockLanes __attribute__((vector_size(64)));

inline BlockLanes every_lane(std::uint64_t x) {
  return BlockLanes{} + x;
}

/// The low 52 bits of x times those of m: the product's low (high) 52 bits are added to `sum`.
inline BlockLanes add_low(BlockLanes sum, BlockLanes x, std::uint64_t m) {
  return (BlockLanes)_mm512_madd52lo_epu64((__m512i)sum, (__m512i)x, (__m512i)every_lane(m));
}
inline BlockLanes add_high(BlockLanes sum, BlockLanes x, std::uint64_t m) {
  return (BlockLanes)_mm512_madd52hi_epu64((__m512i)sum, (__m512i)x, (__m512i)every_lane(m));
}

/// The high 64 bits of x m, lane by lane.
inline BlockLanes mulhi_lanes(BlockLanes x, std::uint64_t m) {
  const std::uint64_t m1 = m >> 52;
  const BlockLanes x1 = x >> 52;
  const BlockLanes s = add_low(add_low(add_high(BlockLanes{}, x, m), x, m1), x1, m),
                   t = add_high(add_high(add_low(BlockLanes{}, x1, m1), x, m1), x1, m);
  return (s >> 12) + (t << 40);
}

/// The four words of eight blocks, lane k being block k.
struct EightBlocks {
  BlockLanes c0, c1, c2, c3;

  void round(std::uint64_t key0, std::uint64_t key1) {
    const BlockLanes high0 = mulhi_lanes(c0, PHILOX_M4x64_0), high1 = mulhi_lanes(c2, PHILOX_M4x64_1),
                     low0 = c0 * PHILOX_M4x64_0, low1 = c2 * PHILOX_M4x64_1;
    c0 = high1 ^ c1 ^ key0;
    c1 = low1;
    c2 = high0 ^ c3 ^ key1;
    c3 = low0;
  }
  /// Block after block.
  void store(std::uint64_t* words) const {
    const auto even01 = __builtin_shufflevector(c0, c1, 0, 8, 2, 10, 4, 12, 6, 14),
               odd01 = __builtin_shufflevector(c0, c1, 1, 9, 3, 11, 5, 13, 7, 15),
               even23 = __builtin_shufflevector(c2, c3, 0, 8, 2, 10, 4, 12, 6, 14),
               odd23 = __builtin_shufflevector(c2, c3, 1, 9, 3, 11, 5, 13, 7, 15);
    const auto pair = [&](auto k) {  // blocks 2 k and 2 k + 1
      constexpr int j = 2 * k;
      const auto even = __builtin_shufflevector(even01, even23, j, j + 1, j + 8, j + 9),
                 odd = __builtin_shufflevector(odd01, odd23, j, j + 1, j + 8, j + 9);
      const BlockLanes both = __builtin_shufflevector(even, odd, 0, 1, 2, 3, 4, 5, 6, 7);
      __builtin_memcpy(words + 8 * k, &both, sizeof both);
    };
    pair(std::integral_constant<int, 0>()), pair(std::integral_constant<int, 1>());
    pair(std::integral_constant<int, 2>()), pair(std::integral_constant<int, 3>());
  }
};

/// words[4 k .. 4 k + 3] = random_block(stream with row and batch k, and the bits of layer k, block
/// k) for k < kBlocksAtOnce.
inline void random_blocks(const RandomStream& stream, const BlockKeys& keys, std::uint64_t* words) {
  EightBlocks a{}, b{};
  const auto load = [](const std::uint64_t* from, BlockLanes& first, BlockLanes& second) {
    __builtin_memcpy(&first, from, sizeof first);
    __builtin_memcpy(&second, from + 8, sizeof second);
  };
  load(keys.block, a.c0, b.c0);
  load(keys.row, a.c1, b.c1);
  load(keys.layer, a.c2, b.c2);
  a.c2 |= every_lane(stream.layer);
  b.c2 |= every_lane(stream.layer);
  load(keys.batch, a.c3, b.c3);
  std::uint64_t key0 = stream.seed, key1 = (static_cast<std::uint64_t>(stream.purpose) << 56) | stream.epoch;
  for (int round = 0; round < 10; ++round) {
    a.round(key0, key1);
    b.round(key0, key1);
    key0 += PHILOX_W64_0;
    key1 += PHILOX_W64_1;
  }
  a.store(words);
  b.store(words + 32);
}

#else

inline void random_blocks(RandomStream stream, const BlockKeys& keys, std::uint64_t* words) {
  const auto layer = stream.layer;
  for (int k = 0; k < kBlocksAtOnce; ++k) {
    stream.row = keys.row[k];
    stream.batch = keys.batch[k];
    stream.layer = layer | keys.layer[k];
    const auto block = random_block(stream, keys.block[k]);
    for (int w = 0; w < 4; ++w) words[4 * k + w] = block.v[w];
  }
}

#endif

}  // namespace espalier
