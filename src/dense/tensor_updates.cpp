#include "tensor_updates.both.cu"

#include <algorithm>
#include <bit>

#include "espalier/dense/tensor_updates.hpp"

namespace espalier {

template void clip_to_norm(const Cpu&, double, std::vector<Matrix<float>>&, Array<Cpu, double>&);
template void blend(const Cpu&, double, const Matrix<float>&, Matrix<float>&);
template void blend(const Cpu&, double, const Matrix<double>&, Matrix<double>&);
template void weigh(const Cpu&, double, const Matrix<float>&, Matrix<float>&, Matrix<float>&, std::int64_t);
template void weigh(const Cpu&, double, const Matrix<double>&, Matrix<double>&, Matrix<double>&,
                    std::int64_t);
template void blend_mean(const Cpu&, double, const Matrix<float>&, const Matrix<float>&, std::int64_t,
                         Matrix<float>&);
template void blend_mean(const Cpu&, double, const Matrix<double>&, const Matrix<double>&, std::int64_t,
                         Matrix<double>&);

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
