#include <limits>

#include "device_tensors.hpp"
#include "espalier/base/fixed_point.hpp"
#include "espalier/train/device_gradient_reduction.hpp"

namespace espalier {
namespace {

using device_tensors::for_each_element, device_tensors::Tensor, device_tensors::Tensors;

constexpr std::uint32_t kInfinity = 0x7f800000u;  // the bits of magnitudes ascend with them; NaN comes last

__device__ std::uint32_t magnitude_bits(float x) {
  return __float_as_uint(x) & 0x7fffffffu;
}

/// The largest of the numbers that the lanes of a warp have.
__device__ std::uint32_t largest_of_warp(std::uint32_t mine) {
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) {
    const std::uint32_t other = __shfl_xor_sync(kAllLanes, mine, lanes);
    mine = other > mine ? other : mine;
  }
  return mine;
}

/// bounds[t] = the bits of the largest magnitude of tensor t, unless they are larger already.
__global__ void __launch_bounds__(kBlockThreads)
    find_bounds_kernel(Tensors<const float> tensors, unsigned long long* bounds) {
  const auto& tensor = tensors.tensor[blockIdx.y];
  if (static_cast<std::int64_t>(blockIdx.x) * blockDim.x >= tensor.size) return;  // the whole block
  const auto step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  std::uint32_t largest = 0;
  for (auto k = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; k < tensor.size;
       k += step) {
    const std::uint32_t bits = magnitude_bits(tensor.data[k]);
    largest = bits > largest ? bits : largest;
  }
  largest = largest_of_warp(largest);
  if (threadIdx.x % kWarp == 0 && largest > 0)
    atomicMax(bounds + tensor.number, static_cast<unsigned long long>(largest));
}

/// What a tensor of this bound is counted in: a power of two, or NaN for a bound that is not finite.
__device__ double unit_of(std::uint64_t bound, std::int64_t contributions) {
  if (bound >= kInfinity) return std::numeric_limits<double>::quiet_NaN();
  const auto magnitude = static_cast<double>(__uint_as_float(static_cast<unsigned>(bound)));
  return FixedPointScale(magnitude, contributions).to_double(1);
}

void find_units(const Cuda& cuda, const std::uint64_t* bounds, std::int64_t tensors,
                std::int64_t contributions, double* units) {
  for_each(cuda, "gradient units", tensors,
           [=] __device__(std::int64_t t) { units[t] = unit_of(bounds[t], contributions); });
}

void copy_scaled(const Cuda& cuda, const std::vector<Tensor<const float>>& from, float scale, float* to) {
  for_each_element(cuda, "gradient copy", from,
                   [=] __device__(int, std::int64_t at, const float& x) { to[at] = x * scale; });
}

void add_scaled(const Cuda& cuda, const std::vector<Tensor<const float>>& from, float scale, float* to) {
  for_each_element(cuda, "gradient sum", from,
                   [=] __device__(int, std::int64_t at, const float& x) { to[at] += x * scale; });
}

/// fixed += the numbers in fixed point; nothing for a tensor without a unit.
void add_fixed(const Cuda& cuda, const std::vector<Tensor<const float>>& from, const double* units,
               std::int64_t* fixed) {
  for_each_element(cuda, "gradient fixed point", from,
                   [=] __device__(int t, std::int64_t at, const float& x) {
                     const double factor = 1.0 / units[t];
                     if (factor == factor)
                       fixed[at] += static_cast<std::int64_t>(rint(static_cast<double>(x) * factor));
                   });
}

/// NaN for a tensor without a unit.
void to_floats(const Cuda& cuda, const std::int64_t* fixed, const double* units,
               const std::vector<Tensor<float>>& to) {
  for_each_element(cuda, "gradient result", to, [=] __device__(int t, std::int64_t at, float& x) {
    x = static_cast<float>(static_cast<double>(fixed[at]) * units[t]);
  });
}

void copy_to(const Cuda& cuda, const float* from, const std::vector<Tensor<float>>& to) {
  for_each_element(cuda, "gradient result", to,
                   [=] __device__(int, std::int64_t at, float& x) { x = from[at]; });
}

}  // namespace

void note_not_finite(const Cuda& cuda, const std::vector<const Matrix<float, Cuda>*>& tensors, int* flag) {
  for_each_element(cuda, "note_not_finite", device_tensors::list_of<const float>(tensors),
                   [=] __device__(int, std::int64_t, const float& x) {
                     if (magnitude_bits(x) >= kInfinity) *flag = 1;  // whoever writes last writes the same
                   });
}

void DeviceGradientReduction::add(const std::vector<const Matrix<float, Cuda>*>& tensors, float scale) {
  const bool anew = reproducible_ || contributions_ == 0;
  if (anew && contributions_ == kept_.size()) kept_.emplace_back();
  if (anew) ++contributions_;
  auto& flat = kept_[contributions_ - 1];
  const auto list = device_tensors::list_of<const float>(tensors);
  flat.resize(static_cast<std::size_t>(total_size(list)));
  (anew ? copy_scaled : add_scaled)(cuda_, list, scale, flat.data());
}

void DeviceGradientReduction::finish(std::int64_t contributions,
                                     const std::vector<Matrix<float, Cuda>*>& sums) {
  if (reproducible_)
    finish_exact(contributions, sums);
  else
    finish_float(sums);
  contributions_ = 0;
}

void DeviceGradientReduction::finish_float(const std::vector<Matrix<float, Cuda>*>& sums) {
  const auto to = device_tensors::list_of<float>(sums);
  if (kept_.empty()) kept_.emplace_back();
  auto& flat = kept_.front();
  if (contributions_ == 0) {
    flat.resize(static_cast<std::size_t>(total_size(to)));
    fill_zero(cuda_, flat);
  }
  comm_.all_reduce(flat.data(), total_size(to), Reduction::kSum, "reduce");
  copy_to(cuda_, flat.data(), to);
}

void DeviceGradientReduction::finish_exact(std::int64_t contributions,
                                           const std::vector<Matrix<float, Cuda>*>& sums) {
  const auto to = device_tensors::list_of<float>(sums);
  const auto tensors = std::ssize(sums);
  bounds_.resize(sums.size());
  fill_zero(cuda_, bounds_);
  for (std::size_t m = 0; m < contributions_; ++m)
    device_tensors::launch_for(cuda_, "gradient bounds",
                               device_tensors::list_like<const float>(to, kept_[m].data()),
                               find_bounds_kernel, reinterpret_cast<unsigned long long*>(bounds_.data()));
  comm_.all_reduce(bounds_.data(), tensors, Reduction::kMax, "reduce");
  units_.resize(sums.size());
  find_units(cuda_, bounds_.data(), tensors, contributions, units_.data());

  fixed_.resize(static_cast<std::size_t>(total_size(to)));
  fill_zero(cuda_, fixed_);
  for (std::size_t m = 0; m < contributions_; ++m)
    add_fixed(cuda_, device_tensors::list_like<const float>(to, kept_[m].data()), units_.data(),
              fixed_.data());
  comm_.all_reduce(fixed_.data(), total_size(to), Reduction::kSum, "reduce");
  to_floats(cuda_, fixed_.data(), units_.data(), to);
}

}  // namespace espalier
