// A permutation of [0, n) that is computed where it is asked for, not stored.
//
// A Feistel network over 2h bits, 4^h >= n: six rounds (l, r) -> (r, l xor f(round, r)) whose f are
// words of Philox, which is a bijection of [0, 4^h) for any f (Luby and Rackoff 1988). A result of
// n or above goes through the network again until it is below n ("cycle walking", Black and Rogaway
// 2002), which leaves a bijection of [0, n); fewer than four times on average, as 4^h < 4 n.
#pragma once

#include <cstdint>

#include "espalier/base/philox.hpp"

namespace espalier {

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
