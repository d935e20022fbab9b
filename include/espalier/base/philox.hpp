// Counter-based random numbers: every draw of a job is a pure function of what it is for.
//
// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3, SC 2011;
// Random123) maps a 64-bit key and a 128-bit counter to four words of 32 bits, by products of 32 by
// 32 bits, which every vector unit and every GPU has (decision 052). We fill them so that no two
// purposes share a counter of a key:
//
//     key of a stream       words 0, 1 of Philox(key = seed,
//                           counter = (purpose | layer << 8, relation, epoch low, epoch high))
//     counter of a block    (row low, row high, batch, block)
//     word t of a stream    hi << 32 | lo: hi is word t % 4 of block t / 4, lo that of block
//                           2^31 + t / 4, which is computed only where a draw cannot do without
//
// A purpose may use blocks in another way, and says so where it draws. Layers lie below 2^24,
// relations, batches and blocks below 2^32, t below 2^33.
//
// There is no generator state, so a sample cannot depend on the order, the rank, the thread or the
// device that drew it. Graph files are made of other numbers (graph/file_stream.hpp).
//
// Of these words: streams by purpose, numbers below a bound, and permutations of [0, n) that are
// computed where they are asked for.
#pragma once

// Philox needs none of the processor's intrinsics, and their header takes as long to read as ours.
#define R123_USE_SSE 0
#include <Random123/philox.h>

#include <cstdint>

#include "espalier/base/host_device.hpp"

namespace espalier {

/// What a draw is for. The numbers are part of what a seed means: never renumber them. 5 to 8, 15
/// and 16 are FilePurpose's.
enum class Purpose : std::uint64_t {
  kSample = 1,
  kShuffle = 2,
  kDropout = 3,
  kInitialWeights = 4,
  kAttention = 9,
  kInitialEmbeddings = 10,
  kRecompute = 13,
  kNegative = 14,
  kRace = 17,
  kTest = 255
};

/// Most batches of an epoch: their numbers have 32 bits, and one more may be drawn for.
inline constexpr std::int64_t kMostBatches = 0xffffffff;

/// The name of the stream of draws of one row.
struct RandomStream {
  std::uint64_t seed = 0;
  Purpose purpose = Purpose::kTest;
  std::uint64_t epoch = 0;
  std::uint64_t batch = 0;
  std::uint64_t layer = 0;
  std::uint64_t row = 0;
  std::uint64_t relation = 0;
};

using RandomBlock = r123array4x32;

/// Of all streams that differ in batch and row alone.
struct StreamKey {
  std::uint32_t low = 0, high = 0;
  bool operator==(const StreamKey&) const = default;
};

ESPALIER_HD inline RandomBlock philox_block(StreamKey key, std::uint32_t c0, std::uint32_t c1,
                                            std::uint32_t c2, std::uint32_t c3) {
  const r123::Philox4x32::ctr_type counter = {{c0, c1, c2, c3}};
  const r123::Philox4x32::key_type k = {{key.low, key.high}};
  return philox4x32_R(10, counter, k);
}

ESPALIER_HD inline StreamKey key_of(const RandomStream& stream) {
  const StreamKey seed = {static_cast<std::uint32_t>(stream.seed),
                          static_cast<std::uint32_t>(stream.seed >> 32)};
  const auto block = philox_block(
      seed, static_cast<std::uint32_t>(static_cast<std::uint64_t>(stream.purpose) | stream.layer << 8),
      static_cast<std::uint32_t>(stream.relation), static_cast<std::uint32_t>(stream.epoch),
      static_cast<std::uint32_t>(stream.epoch >> 32));
  return {block.v[0], block.v[1]};
}

/// A stream with its key, which costs a block: made once where many rows draw.
struct KeyedStream {
  StreamKey key;
  std::uint32_t batch = 0;
  std::uint64_t row = 0;

  KeyedStream() = default;
  ESPALIER_HD KeyedStream(const RandomStream& stream)
      : key(key_of(stream)), batch(static_cast<std::uint32_t>(stream.batch)), row(stream.row) {}
  /// The same of another row.
  ESPALIER_HD KeyedStream of_row(std::int64_t other) const {
    auto stream = *this;
    stream.row = static_cast<std::uint64_t>(other);
    return stream;
  }
};

/// Four words of 32 bits.
ESPALIER_HD inline RandomBlock random_block(const KeyedStream& stream, std::uint64_t block) {
  return philox_block(stream.key, static_cast<std::uint32_t>(stream.row),
                      static_cast<std::uint32_t>(stream.row >> 32), stream.batch,
                      static_cast<std::uint32_t>(block));
}

/// Word `draw` % 4 of a block, by selections: on a GPU an array that a variable indexes is
/// in memory.
ESPALIER_HD inline std::uint32_t word_of(const RandomBlock& block, std::uint64_t draw) {
  const auto of_low = draw % 2 == 0 ? block.v[0] : block.v[1],
             of_high = draw % 2 == 0 ? block.v[2] : block.v[3];
  return draw % 4 < 2 ? of_low : of_high;
}

/// The high and the low half of word `draw`.
ESPALIER_HD inline std::uint32_t random32(const KeyedStream& stream, std::uint64_t draw) {
  return word_of(random_block(stream, draw / 4), draw);
}
ESPALIER_HD inline std::uint32_t low_random32(const KeyedStream& stream, std::uint64_t draw) {
  return word_of(random_block(stream, (std::uint64_t{1} << 31) + draw / 4), draw);
}

/// The 64-bit word number `draw` of the stream.
ESPALIER_HD inline std::uint64_t random64(const KeyedStream& stream, std::uint64_t draw) {
  return std::uint64_t{random32(stream, draw)} << 32 | low_random32(stream, draw);
}
ESPALIER_HD inline std::uint64_t random64(const RandomStream& stream, std::uint64_t draw) {
  return random64(KeyedStream(stream), draw);
}

/// The high 64 bits of a 128-bit product.
ESPALIER_HD inline std::uint64_t mulhi(std::uint64_t a, std::uint64_t b) {
#if defined(__CUDA_ARCH__)
  return __umul64hi(a, b);
#else
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(a) * b) >> 64);
#endif
}

/// floor(word bound / 2^64) of the word hi << 32 | low(). With b = bound < 2^32 it is floor((hi b +
/// floor(lo b / 2^32)) / 2^32), whose inner floor is at most b - 1: `low` is asked for only where
/// that may carry, which has the probability b / 2^32.
template <class Low>
ESPALIER_HD inline std::uint64_t point_below(std::uint32_t high, std::uint64_t bound, const Low& low) {
  if (bound >> 32 != 0) return mulhi(std::uint64_t{high} << 32 | low(), bound);
  const auto product = high * bound;
  if (static_cast<std::uint64_t>(static_cast<std::uint32_t>(product)) + bound <= std::uint64_t{1} << 32)
    return product >> 32;
  return (product + (low() * bound >> 32)) >> 32;
}

/// An integer in [0, bound): the bias is below bound / 2^64.
ESPALIER_HD inline std::uint64_t random_below(const KeyedStream& stream, std::uint64_t draw,
                                              std::uint64_t bound) {
  return point_below(random32(stream, draw), bound,
                     [&] { return std::uint64_t{low_random32(stream, draw)}; });
}
ESPALIER_HD inline std::uint64_t random_below(const RandomStream& stream, std::uint64_t draw,
                                              std::uint64_t bound) {
  return random_below(KeyedStream(stream), draw, bound);
}

/// A double in (0, 1) with 52 random bits, from one 64-bit word. Neither end is reached: k + 1/2
/// with k < 2^52 is exact.
ESPALIER_HD inline double to_unit_double(std::uint64_t word) {
  return (static_cast<double>(word >> 12) + 0.5) * 0x1.0p-52;
}

// A permutation of [0, n) that is computed where it is asked for, not stored.
//
// A Feistel network over 2h bits, 4^h >= n: six rounds (l, r) -> (r, l xor f(round, r)) whose f are
// words of Philox, which is a bijection of [0, 4^h) for any f (Luby and Rackoff 1988). A result of
// n or above goes through the network again until it is below n ("cycle walking", Black and Rogaway
// 2002), which leaves a bijection of [0, n); fewer than four times on average, as 4^h < 4 n.

class KeyedPermutation {
 public:
  /// Of [0, n), one for each stream; the six layers behind the stream's must be no one
  /// else's. n >= 1.
  KeyedPermutation(RandomStream stream, std::int64_t n) : n_(static_cast<std::uint64_t>(n)) {
    while (half_ < 32 && std::uint64_t{1} << 2 * half_ < n_) ++half_;
    for (auto& round : rounds_) {
      ++stream.layer;
      round = stream;
    }
  }

  std::int64_t operator()(std::int64_t place) const {
    auto x = static_cast<std::uint64_t>(place);
    do x = once(x);
    while (x >= n_);
    return static_cast<std::int64_t>(x);
  }

 private:
  std::uint64_t once(std::uint64_t x) const {
    const auto mask = (std::uint64_t{1} << half_) - 1;
    auto left = x >> half_, right = x & mask;
    for (const auto& round : rounds_) {
      const auto next = left ^ (random32(round, right) & mask);
      left = right;
      right = next;
    }
    return left << half_ | right;
  }

  KeyedStream rounds_[6];
  std::uint64_t n_;
  int half_ = 1;
};

}  // namespace espalier
