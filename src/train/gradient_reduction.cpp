#include "gradient_reduction.inl.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace espalier {

namespace {

/// work(its number, its place in a flat array, its size, the tensor) for each tensor.
template <class Tensor, class Work>
void for_tensors(const std::vector<Tensor*>& tensors, const Work& work) {
  std::size_t at = 0;
  for (std::size_t t = 0; t < tensors.size(); at += tensors[t]->data.size(), ++t)
    work(t, at, tensors[t]->data.size(), *tensors[t]);
}

std::uint32_t largest_magnitude(const float* numbers, std::size_t count) {
  std::uint32_t largest = 0;
  for (std::size_t k = 0; k < count; ++k)
    largest = std::max(largest, std::bit_cast<std::uint32_t>(numbers[k]) & 0x7fffffffu);
  return largest;
}

/// fixed[k] += FixedPointScale::to_fixed of number k; all are finite and within the scale's bound. `factor` is the
/// power of two that to_fixed multiplies by.
void add_fixed_numbers(const float* numbers, std::size_t count, double factor, std::int64_t* fixed) {
  for (std::size_t k = 0; k < count; ++k)
    fixed[k] += static_cast<std::int64_t>(std::rint(static_cast<double>(numbers[k]) * factor));
}

}  // namespace

template <class Space, class T>
void make_zeros(const Space&, std::int64_t size, Array<Space, T>& zeros) {
  zeros.assign(static_cast<std::size_t>(size), T{0});
}

template <>
void add_scaled<Cpu>(const Cpu&, const std::vector<const Matrix<float>*>& tensors, float scale, bool anew,
                     Buffer<float>& flat) {
  for_tensors(tensors, [&](std::size_t, std::size_t at, std::size_t size, const Matrix<float>& tensor) {
    float* const to = flat.data() + at;
    const float* const from = tensor.data.data();
    if (anew)
      for (std::size_t k = 0; k < size; ++k) to[k] = from[k] * scale;
    else
      for (std::size_t k = 0; k < size; ++k) to[k] += from[k] * scale;
  });
}

template <>
void raise_bounds<Cpu>(const Cpu&, const Buffer<float>& flat, const std::vector<Matrix<float>*>& like,
                       Buffer<std::uint64_t>& bounds) {
  for_tensors(like, [&](std::size_t t, std::size_t at, std::size_t size, const Matrix<float>&) {
    bounds[t] = std::max<std::uint64_t>(bounds[t], largest_magnitude(flat.data() + at, size));
  });
}

template <>
void find_units<Cpu>(const Cpu&, const Buffer<std::uint64_t>& bounds, std::int64_t contributions,
                     Buffer<double>& units) {
  for (std::size_t t = 0; t < bounds.size(); ++t)
    units[t] = unit_of(bounds[t], std::bit_cast<float>(static_cast<std::uint32_t>(bounds[t])), contributions);
}

template <>
void add_fixed<Cpu>(const Cpu&, const Buffer<float>& flat, const std::vector<Matrix<float>*>& like,
                    const Buffer<double>& units, Buffer<std::int64_t>& fixed) {
  for_tensors(like, [&](std::size_t t, std::size_t at, std::size_t size, const Matrix<float>&) {
    if (!std::isnan(units[t])) add_fixed_numbers(flat.data() + at, size, 1.0 / units[t], fixed.data() + at);
  });
}

template <>
void from_fixed<Cpu>(const Cpu&, const Buffer<std::int64_t>& fixed, const Buffer<double>& units,
                     const std::vector<Matrix<float>*>& sums) {
  for_tensors(sums, [&](std::size_t t, std::size_t at, std::size_t size, Matrix<float>& sum) {
    for (std::size_t k = 0; k < size; ++k)
      sum.data[k] = static_cast<float>(static_cast<double>(fixed[at + k]) * units[t]);
  });
}

template <>
void copy_flat<Cpu>(const Cpu&, const Buffer<float>& flat, const std::vector<Matrix<float>*>& sums) {
  for_tensors(sums, [&](std::size_t, std::size_t at, std::size_t size, Matrix<float>& sum) {
    std::copy_n(flat.data() + at, size, sum.data.data());
  });
}

template class GradientReductionOn<Cpu>;

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
