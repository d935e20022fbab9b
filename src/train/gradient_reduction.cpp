#include "gradient_reduction.inl.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace espalier {

template <>
void raise_bounds<Cpu>(const Cpu&, const std::vector<Tensor<const float>>& tensors,
                       Buffer<std::uint64_t>& bounds) {
  for (const auto& tensor : tensors) {
    std::uint32_t largest = 0;
    for (std::int64_t k = 0; k < tensor.size; ++k)
      largest = std::max(largest, std::bit_cast<std::uint32_t>(tensor.data[k]) & 0x7fffffffu);
    auto& bound = bounds[tensor.number];
    bound = std::max<std::uint64_t>(bound, largest);
  }
}

template <>
void find_units<Cpu>(const Cpu&, const Buffer<std::uint64_t>& bounds, std::int64_t contributions,
                     Buffer<double>& units) {
  for (std::size_t t = 0; t < bounds.size(); ++t)
    units[t] = unit_of(bounds[t], std::bit_cast<float>(static_cast<std::uint32_t>(bounds[t])), contributions);
}

template class GradientReductionOn<Cpu>;
template class NetworkReductionOn<Cpu>;

std::vector<std::size_t> reduction_pieces(std::span<const GradientGroup> groups, int ranks) {
  constexpr std::int64_t kLeast = 1 << 14, kLeastOfRank = 1 << 11;  // numbers
  const auto least = std::max(kLeast, kLeastOfRank * ranks);
  std::vector<std::size_t> ends;
  std::int64_t numbers = 0;
  for (std::size_t k = 0; k < groups.size() && ranks > 1; ++k) {
    numbers += groups[k].numbers;
    if (numbers < least) continue;
    ends.push_back(k + 1);
    numbers = 0;
  }
  if (ends.empty() || numbers > 0)
    ends.push_back(groups.size());
  else
    ends.back() = groups.size();
  return ends;
}

double reproducible_sum(const Communicator& comm, const std::vector<double>& mine) {
  double bound = 0;
  for (const double x : mine)
    bound = std::isfinite(x) ? std::max(bound, std::abs(x)) : std::numeric_limits<double>::infinity();
  bound = comm.all_reduce(bound, Reduction::kMax, "report");
  const auto terms = comm.all_reduce(static_cast<std::int64_t>(mine.size()), Reduction::kSum, "report");
  if (!std::isfinite(bound)) return std::numeric_limits<double>::quiet_NaN();
  const FixedPointScale scale(bound, terms);
  std::int64_t sum = 0;
  for (const double x : mine) sum += scale.to_fixed(x);
  return scale.to_double(comm.all_reduce(sum, Reduction::kSum, "report"));
}

}  // namespace espalier
