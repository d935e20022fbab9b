// draw_uniform for up to kFewDraws picks, all of them in vector registers.
//
// The list of chosen positions is kept as below[i] = chosen[i] - i, the number of positions still
// in play that lie below the i-th chosen one. A draw is a point among the positions in play. It
// passes the chosen ones with below[i] <= point, takes its place behind them with exactly `point`
// positions below it, and each one behind it loses one. So a draw is a compare, a shift by one lane
// and a selection, whatever the point is: no branch and no loop. Results are those of draw_uniform.
// Registers are as wide as the machine's, and no more of them than the picks need.
// Not for .cu files: nvcc ends on vectors of the C++ compiler.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "espalier/base/philox.hpp"

namespace espalier {

inline constexpr int kFewDraws = 16;
inline constexpr std::int64_t kMostForFewDraws = std::numeric_limits<std::int32_t>::max() - 2 * kFewDraws;

/// Numbers of 32 bits in a register.
#if defined(__AVX512F__)
inline constexpr int kDrawLanes = 16;
#elif defined(__AVX2__)
inline constexpr int kDrawLanes = 8;
#else
inline constexpr int kDrawLanes = 4;
#endif

/// draw_few_uniform in so many registers of so many lanes; point_of(t): the point of draw t.
template <int kLanes, int kRegisters, class Point>
inline void draw_few_in_registers(const Point& point_of, std::int64_t picks, std::int64_t excluded,
                                  std::int32_t* chosen) {
  typedef std::int32_t Lanes __attribute__((vector_size(kLanes * sizeof(std::int32_t))));
  // Larger than any point, also when it loses one per draw.
  constexpr std::int32_t kNone = kMostForFewDraws + kFewDraws;
  // The last lane of `a`, then all of `b` but its last.
  const auto shifted = []<int... kLane>(Lanes a, Lanes b, std::integer_sequence<int, kLane...>)->Lanes {
    return __builtin_shufflevector(a, b, (kLanes - 1 + kLane)...);
  };
  constexpr std::make_integer_sequence<int, kLanes> kAll;
  Lanes below[kRegisters];
  for (auto& lanes : below) lanes = Lanes{} + kNone;
  if (excluded >= 0) below[0][0] = static_cast<std::int32_t>(excluded);
  for (std::int64_t t = 0; t < picks; ++t) {
    const Lanes point = static_cast<std::int32_t>(point_of(t)) - Lanes{};
#pragma GCC unroll 4
    for (int r = kRegisters - 1; r >= 0; --r) {
      const Lanes before = shifted(r > 0 ? below[r > 0 ? r - 1 : 0] : Lanes{} - 1, below[r], kAll),
                  behind = before <= point ? point : before - 1;
      below[r] = below[r] <= point ? below[r] : behind;
    }
  }
  for (int r = 0; r < kRegisters; ++r)
    for (int i = 0; i < kLanes; ++i) below[r][i] += r * kLanes + i;
  __builtin_memcpy(chosen, below, sizeof below);
}

/// Draws `picks` of the positions 0 .. support-1, support <= kMostForFewDraws, with equal weights
/// and without the position `excluded` (-1: none). Afterwards chosen[0 .. count) is ascending, with
/// `excluded` among them, where count = picks, or picks + 1 with an excluded one, is at most
/// kFewDraws; chosen has room for kFewDraws. high[t] is the high half of word t of the row's
/// stream, low(t) its low half, which is hardly ever asked for.
template <int kLanes = kDrawLanes, class Low>
inline void draw_few_uniform(const std::uint32_t* high, const Low& low, std::int64_t support,
                             std::int64_t picks, std::int64_t excluded, std::int32_t* chosen) {
  const std::int64_t count = picks + (excluded >= 0);
  if (excluded >= 0) --support;
  const auto point_of = [&](std::int64_t t) {
    return point_below(high[t], static_cast<std::uint64_t>(support - t),
                       [&] { return std::uint64_t{low(t)}; });
  };
  if (kLanes < 8 && count <= 4)
    draw_few_in_registers<kLanes, 1>(point_of, picks, excluded, chosen);
  else if (kLanes < 16 && count <= 8)
    draw_few_in_registers<kLanes, (kLanes < 8 ? 2 : 1)>(point_of, picks, excluded, chosen);
  else
    draw_few_in_registers<kLanes, kFewDraws / kLanes>(point_of, picks, excluded, chosen);
}

}  // namespace espalier
