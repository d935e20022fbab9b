// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection of 64 bits in which every
// input bit flips every output bit with probability near one half. Digests of samples and of files
// are sums of it.
#pragma once

#include <cstdint>

#include "espalier/base/host_device.hpp"

namespace espalier {

ESPALIER_HD inline std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// `state` after one more word.
ESPALIER_HD inline std::uint64_t absorb(std::uint64_t state, std::int64_t word) {
  return mix(state ^ static_cast<std::uint64_t>(word));
}

}  // namespace espalier
