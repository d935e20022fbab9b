// The sum of one number for each of many things, as one thread of the CPU has it.
//
// A warp of a GPU has as many lanes as there are sums here: its counterpart
// (device_interleaved_sum.hpp) gives the same bits. Registers of any width hold the sums
// side by side.
#pragma once

#include <cstdint>

namespace espalier {

inline constexpr int kInterleavedSums = 32;

/// term(0) + .. + term(count - 1): term k belongs to sum k modulo 32; then halves of the sums are
/// added to halves.
template <class Term>
double interleaved_sum(std::int64_t count, const Term& term) {
  double sums[kInterleavedSums] = {};
  std::int64_t first = 0;
  for (; first + kInterleavedSums <= count; first += kInterleavedSums)
    for (int k = 0; k < kInterleavedSums; ++k) sums[k] += term(first + k);
  for (int k = 0; first + k < count; ++k) sums[k] += term(first + k);
  for (int half = kInterleavedSums / 2; half > 0; half /= 2)
    for (int k = 0; k < half; ++k) sums[k] += sums[k + half];
  return sums[0];
}

}  // namespace espalier
