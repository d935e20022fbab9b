// NORM of LADIES: the exact distribution of one batch and layer (src/sample/ladies.cpp says where
// it is used).
#pragma once

#include <cstdint>
#include <vector>

#include "espalier/base/host_device.hpp"
#include "espalier/sample/sampler.hpp"
#include "espalier/sparse/sum_rows.hpp"

namespace espalier {

/// Prefix sums [support + 1] of the integer weights of the columns of `sum`; the last is their
/// total, and column k has probability (prefix[k+1] - prefix[k]) / total. Mode paper squares the
/// sum (it counts edges), the others take it as it is (it sums squares). Ends the job when the
/// total does not fit in 64 bits.
template <class Index>
std::vector<std::uint64_t> ladies_prefix(const SparseSum<Index>& sum, SamplerMode mode);

/// The weight of a column from the sum over the frontier's rows; `overflow` becomes true when it
/// does not fit in 64 bits.
ESPALIER_HD inline std::uint64_t ladies_weight(std::uint64_t sum, SamplerMode mode, bool* overflow) {
  if (mode != SamplerMode::kPaper) return sum;
  if (sum >> 32 != 0) *overflow = true;
  return sum * sum;
}

/// Ends the job when the weights of a batch with this support did not fit.
void check_ladies_weights(bool overflow, std::int64_t support);

}  // namespace espalier
