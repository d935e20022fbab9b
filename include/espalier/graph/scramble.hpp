// A keyed bijection of [0, n): gives vertices their ids, so that an id says nothing about
// degree or class.
//
// On b = ceil(log2 n) bits a round is x ^= x >> ceil(b/2); x *= odd; x ^= key (mod 2^b); each step
// can be undone. Where n is no power of two the map is applied until it lands in [0, n) (cycle
// walking), less than twice on average.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "espalier/base/philox.hpp"

namespace espalier {

class Scramble {
 public:
  /// `stream` keys the bijection. n >= 1.
  Scramble(std::int64_t n, const RandomStream& stream) : n_(static_cast<std::uint64_t>(n)) {
    const int bits = n <= 2 ? 1 : std::bit_width(n_ - 1);
    mask_ = (std::uint64_t{1} << bits) - 1;
    shift_ = (bits + 1) / 2;
    for (std::size_t r = 0; r < kRounds; ++r) {
      multiplier_[r] = random64(stream, 2 * r) | 1;
      key_[r] = random64(stream, 2 * r + 1) & mask_;
      inverse_[r] = multiplier_[r];  // right modulo 2^3; each step doubles the bits (Newton)
      for (int step = 0; step < 5; ++step) inverse_[r] *= 2 - multiplier_[r] * inverse_[r];
    }
  }

  std::int64_t operator()(std::int64_t position) const {
    auto x = static_cast<std::uint64_t>(position);
    do {
      for (std::size_t r = 0; r < kRounds; ++r)
        x = (((x ^ (x >> shift_)) * multiplier_[r]) & mask_) ^ key_[r];
    } while (x >= n_);
    return static_cast<std::int64_t>(x);
  }

  /// The position that has this id.
  std::int64_t inverse(std::int64_t id) const {
    auto x = static_cast<std::uint64_t>(id);
    do {
      for (std::size_t r = kRounds; r-- > 0;) {
        x = ((x ^ key_[r]) * inverse_[r]) & mask_;
        x ^= x >> shift_;  // undoes itself: the shift is at least half the bits
      }
    } while (x >= n_);
    return static_cast<std::int64_t>(x);
  }

 private:
  static constexpr std::size_t kRounds = 4;
  std::uint64_t n_, mask_ = 0;
  int shift_ = 0;
  std::array<std::uint64_t, kRounds> multiplier_{}, inverse_{}, key_{};
};

}  // namespace espalier
