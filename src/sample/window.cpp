#include "window.hpp"

#include "espalier/sample/block_value.hpp"

namespace espalier {

Buffer<float> mean_values(const Cpu& cpu, const Buffer<std::int64_t>& offsets, std::int64_t entries) {
  Buffer<float> values(entries);
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
  for (std::int64_t r = 0; r < std::ssize(offsets) - 1; ++r)
    if (const auto picked = offsets[r + 1] - offsets[r]; picked > 0)
      std::fill_n(values.begin() + offsets[r], picked, mean_value(picked));
  return values;
}

}  // namespace espalier
