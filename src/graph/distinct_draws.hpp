// How many draws it takes until about so many of a set of pairs have been drawn, where some draws
// fall on a pair already drawn.
#pragma once

#include <cmath>
#include <cstdint>

namespace espalier {

/// Of so many pairs no more than this part can be wanted.
inline constexpr double kMostOfPairs = 0.95;

/// How many uniform draws of `pairs` give `wanted` distinct ones on average: wanted = pairs (1 -
/// e^(-draws / pairs)).
inline std::int64_t draws_for_distinct(double wanted, double pairs) {
  return std::llround(-pairs * std::log1p(-wanted / pairs));
}

}  // namespace espalier
