// Are numbers finite? What leaves the program, as a row, a score or a weight, is asked.
#pragma once

#include <cstdint>

#include "espalier/base/execution.hpp"

namespace espalier {

/// The bits of infinity: those of magnitudes ascend with them, and NaN comes last.
inline constexpr std::uint32_t kInfinityBits = 0x7f800000u;

/// The place of the first of `size` numbers, memory of the space, that is infinite or no number; -1
/// where all are finite. On a GPU the host waits.
std::int64_t first_not_finite(const Cpu&, const float* values, std::int64_t size);
std::int64_t first_not_finite(const Cuda&, const float* values, std::int64_t size);

}  // namespace espalier
