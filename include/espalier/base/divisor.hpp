// Many numbers divided by one: by a product and a shift, exactly (Granlund and Montgomery, Division
// by invariant integers using multiplication, PLDI 1994). A GPU has no instruction that divides
// integers; where it finds the row and column of an element, this is some ten instructions instead
// of some seventy.
//
// For d that is no power of two let 2^(L-1) < d < 2^L and m = floor(2^(63+L) / d) + 1, which is
// below 2^64. Then m d = 2^(63+L) + e with 0 < e < d, and n m / 2^(63+L) is n / d plus less than
// n / (d 2^63) < 1 / d: too little to reach the next whole number, for every 0 <= n < 2^63.
#pragma once

#include <bit>
#include <cstdint>

#include "espalier/base/philox.hpp"

namespace espalier {

class Divisor {
 public:
  /// divisor >= 1.
  explicit Divisor(std::int64_t divisor) {
    const auto d = static_cast<std::uint64_t>(divisor);
    if (std::has_single_bit(d)) {
      shift_ = std::countr_zero(d);
    } else {
      __extension__ using Wide = unsigned __int128;
      const int bits = std::bit_width(d);
      multiplier_ = static_cast<std::uint64_t>((Wide{1} << (63 + bits)) / d) + 1;
      shift_ = bits - 1;
    }
  }

  /// floor(n / divisor), for n >= 0.
  ESPALIER_HD std::int64_t quotient(std::int64_t n) const {
    const auto whole = static_cast<std::uint64_t>(n);
    return static_cast<std::int64_t>((multiplier_ == 0 ? whole : mulhi(whole, multiplier_)) >> shift_);
  }

 private:
  std::uint64_t multiplier_ = 0;  ///< m; 0 for a power of two
  int shift_ = 0;
};

}  // namespace espalier
