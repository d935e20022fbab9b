// NORM of LADIES: the exact distribution of one batch and layer (src/sample/ladies.cpp says where it is used).
#pragma once

#include <cstdint>
#include <vector>

#include "espalier/sample/sampler.hpp"
#include "espalier/sparse/sum_rows.hpp"

namespace espalier {

/// Prefix sums [support + 1] of the integer weights of the columns of `sum`; the last is their total, and column k
/// has probability (prefix[k+1] - prefix[k]) / total. Mode paper squares the sum (it counts edges), the others
/// take it as it is (it sums squares). Ends the job when the total does not fit in 64 bits.
template <class Index>
std::vector<std::uint64_t> ladies_prefix(const SparseSum<Index>& sum, SamplerMode mode);

}  // namespace espalier
