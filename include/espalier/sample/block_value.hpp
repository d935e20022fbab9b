// The value of one entry of a sampled block (design, section 5), on CPU and GPU: float64 from
// integers and one matrix entry, each operation rounded by itself, then once to float32.
#pragma once

#include <cstdint>

#include "espalier/base/host_device.hpp"

namespace espalier {

/// Mean aggregator: 1 / |picked|.
ESPALIER_HD inline float mean_value(std::int64_t picked) {
  return static_cast<float>(1.0 / static_cast<double>(picked));
}

/// Matrix entry a, one of `picked` uniform picks out of `available` entries: a available / picked.
ESPALIER_HD inline float uniform_value(float a, std::int64_t available, std::int64_t picked) {
  return static_cast<float>(static_cast<double>(a) * static_cast<double>(available) /
                            static_cast<double>(picked));
}

/// The factor of draw number j of s (from 1), made in proportion to `weight` when `remaining` (all
/// weights not drawn before) was left. Des Raj: (remaining / weight + s - j) / s.
ESPALIER_HD inline double des_raj_factor(std::uint64_t remaining, std::uint64_t weight, std::int64_t j,
                                         std::int64_t s) {
  const double ratio = static_cast<double>(remaining) / static_cast<double>(weight);
  return (ratio + static_cast<double>(s - j)) / static_cast<double>(s);
}

/// Mean weighted by integers, an entry of a row that is taken whole: weight / total.
ESPALIER_HD inline float weight_share(std::uint64_t weight, std::uint64_t total) {
  return static_cast<float>(static_cast<double>(weight) / static_cast<double>(total));
}

/// The same of draw number j of s (des_raj_factor): (remaining + (s - j) weight) / (s total), which
/// is that factor times weight / total. Those of a row sum to 1 in every draw. The numerator is
/// exact: all weights are at most 2^62, and s of them too (shift_for_sum, base/fixed_point.hpp).
ESPALIER_HD inline float des_raj_share(std::uint64_t remaining, std::uint64_t weight, std::uint64_t total,
                                       std::int64_t j, std::int64_t s) {
  const auto numerator = remaining + static_cast<std::uint64_t>(s - j) * weight;
  return static_cast<float>(static_cast<double>(numerator) /
                            (static_cast<double>(s) * static_cast<double>(total)));
}

/// One over the probability weight / total.
ESPALIER_HD inline double inverse_probability(std::uint64_t total, std::uint64_t weight) {
  return static_cast<double>(total) / static_cast<double>(weight);
}

/// Matrix entry a times the factor of its column.
ESPALIER_HD inline float scaled_value(float a, double factor) {
  return static_cast<float>(static_cast<double>(a) * factor);
}

}  // namespace espalier
