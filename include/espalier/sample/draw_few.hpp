// draw_uniform for up to kFewDraws picks, all of them in one vector register.
//
// The list of chosen positions is kept as below[i] = chosen[i] - i, the number of positions still
// in play that lie below the i-th chosen one. A draw is a point among the positions in play. It
// passes the chosen ones with below[i] <= point, takes its place behind them with exactly `point`
// positions below it, and each one behind it loses one. So a draw is a compare, a shift by one lane
// and a selection, whatever the point is: no branch and no loop. Results are those of draw_uniform.
// Not for .cu files: nvcc ends on vectors of the C++ compiler.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "espalier/base/philox.hpp"

namespace espalier {

inline constexpr int kFewDraws = 16;
inline constexpr std::int64_t kMostForFewDraws = std::numeric_limits<std::int32_t>::max() - 2 * kFewDraws;

/// Draws `picks` of the positions 0 .. support-1, support <= kMostForFewDraws, with equal weights
/// and without the position `excluded` (-1: none). Afterwards chosen[0 .. count) is ascending, with
/// `excluded` among them, where count = picks, or picks + 1 with an excluded one, is at most
/// kFewDraws; chosen has room for kFewDraws. words[t] is the word of draw t of the row's stream.
inline void draw_few_uniform(const std::uint64_t* words, std::int64_t support, std::int64_t picks,
                             std::int64_t excluded, std::int32_t* chosen) {
  using Lanes = std::int32_t __attribute__((vector_size(kFewDraws * sizeof(std::int32_t))));
  constexpr std::int32_t kNone =
      kMostForFewDraws + kFewDraws;  // larger than any point, also when it loses one per draw
  constexpr Lanes kNumbers = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const Lanes minus_one = Lanes{} - 1;
  Lanes below = Lanes{} + kNone;
  if (excluded >= 0) below[0] = static_cast<std::int32_t>(excluded), --support;
  for (std::int64_t t = 0; t < picks; ++t) {
    const auto bound = static_cast<std::uint64_t>(support - t);
    const Lanes point = static_cast<std::int32_t>(mulhi(words[t], bound)) - Lanes{};
    const Lanes before = __builtin_shufflevector(minus_one, below, 0, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
                                                 26, 27, 28, 29, 30);
    const Lanes behind = before <= point ? point : before - 1;
    below = below <= point ? below : behind;
  }
  below += kNumbers;
  __builtin_memcpy(chosen, &below, sizeof below);
}

}  // namespace espalier
