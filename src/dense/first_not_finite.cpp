// The CPU looks at some numbers at a time and stops there.
#include "espalier/dense/first_not_finite.hpp"

#include <algorithm>
#include <bit>

namespace espalier {

// The largest magnitude of a block is found without a branch, so that it is read at the speed of
// memory.
std::int64_t first_not_finite(const Cpu& cpu, const float* values, std::int64_t size) {
  constexpr std::int64_t kBlock = 4096;
  const auto blocks = (size + kBlock - 1) / kBlock;
  std::int64_t first = size;
#pragma omp parallel for num_threads(cpu.threads) schedule(static) reduction(min : first) if (blocks > 16)
  for (std::int64_t block = 0; block < blocks; ++block) {
    const auto begin = block * kBlock, end = std::min(size, begin + kBlock);
    const auto magnitude = [&](std::int64_t k) {
      return std::bit_cast<std::uint32_t>(values[k]) & 0x7fffffffu;
    };
    std::uint32_t largest = 0;
    for (auto k = begin; k < end; ++k) largest = std::max(largest, magnitude(k));
    if (largest < kInfinityBits) continue;
    auto k = begin;
    while (magnitude(k) < kInfinityBits) ++k;
    first = std::min(first, k);
  }
  return first < size ? first : -1;
}

}  // namespace espalier
