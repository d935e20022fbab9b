// Counter-based random numbers: every draw is a pure function of what it is for.
//
// Philox4x64-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3, SC 2011;
// Random123) maps a 128-bit key and a 256-bit counter to 256 random bits. We fill them so that no
// two purposes share a counter:
//
//     key     = (seed, purpose << 56 | epoch)
//     counter = (draw / 4, row, layer, batch)        output word draw % 4
//
// There is no generator state, so a sample cannot depend on the order, the rank, the thread or the
// device that drew it.
#pragma once

// Philox needs none of the processor's intrinsics, and their header takes as long to read as ours.
#define R123_USE_SSE 0
#include <Random123/philox.h>

#include <cstdint>

#include "espalier/base/host_device.hpp"

namespace espalier {

/// What a draw is for. The numbers are part of what a seed means: never renumber them.
enum class Purpose : std::uint64_t {
  kSample = 1,
  kShuffle = 2,
  kDropout = 3,
  kInitialWeights = 4,
  kGenerateEdges = 5,
  kGenerateFeatures = 6,
  kGenerateLabels = 7,
  kGenerateSplit = 8,
  kAttention = 9,
  kInitialEmbeddings = 10,
  kRecompute = 13,
  kNegative = 14,
  kSplitLinks = 15,
  kRelabel = 16,
  kRace = 17,
  kTest = 255
};

/// The stream of draws of one row. `draw` counts 64-bit words within it.
struct RandomStream {
  std::uint64_t seed = 0;
  Purpose purpose = Purpose::kTest;
  std::uint64_t epoch = 0;
  std::uint64_t batch = 0;
  std::uint64_t layer = 0;
  std::uint64_t row = 0;
};

/// Four 64-bit words: draws 4*block .. 4*block+3 of the stream.
ESPALIER_HD inline r123array4x64 random_block(const RandomStream& stream, std::uint64_t block) {
  const r123::Philox4x64::key_type key = {
      {stream.seed, (static_cast<std::uint64_t>(stream.purpose) << 56) | stream.epoch}};
  const r123::Philox4x64::ctr_type counter = {{block, stream.row, stream.layer, stream.batch}};
  return philox4x64_R(10, counter, key);
}

/// Word `draw` % 4 of a block, by selections: on a GPU an array that a variable indexes is
/// in memory.
ESPALIER_HD inline std::uint64_t word_of(const r123array4x64& block, std::uint64_t draw) {
  const auto of_low = draw % 2 == 0 ? block.v[0] : block.v[1],
             of_high = draw % 2 == 0 ? block.v[2] : block.v[3];
  return draw % 4 < 2 ? of_low : of_high;
}

/// The 64-bit word number `draw` of the stream.
ESPALIER_HD inline std::uint64_t random64(const RandomStream& stream, std::uint64_t draw) {
  return word_of(random_block(stream, draw / 4), draw);
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

/// An integer in [0, bound): the bias is below bound / 2^64.
ESPALIER_HD inline std::uint64_t random_below(const RandomStream& stream, std::uint64_t draw,
                                              std::uint64_t bound) {
  return mulhi(random64(stream, draw), bound);
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
  /// Of [0, n), one for each stream; the stream's layers 1 .. 6 must be no one else's. n >= 1.
  KeyedPermutation(const RandomStream& stream, std::int64_t n)
      : stream_(stream), n_(static_cast<std::uint64_t>(n)) {
    while (half_ < 32 && std::uint64_t{1} << 2 * half_ < n_) ++half_;
  }

  std::int64_t operator()(std::int64_t place) const {
    auto x = static_cast<std::uint64_t>(place);
    do x = once(x);
    while (x >= n_);
    return static_cast<std::int64_t>(x);
  }

 private:
  static constexpr int kRounds = 6;

  std::uint64_t once(std::uint64_t x) const {
    const auto mask = (std::uint64_t{1} << half_) - 1;
    auto left = x >> half_, right = x & mask;
    auto stream = stream_;
    for (int round = 1; round <= kRounds; ++round) {
      stream.layer = static_cast<std::uint64_t>(round);
      const auto next = left ^ (random64(stream, right) & mask);
      left = right;
      right = next;
    }
    return left << half_ | right;
  }

  RandomStream stream_;
  std::uint64_t n_;
  int half_ = 1;
};

}  // namespace espalier
