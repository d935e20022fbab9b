// What GradientReductionOn does, for every space: gradient_reduction.cpp and gradient_reduction.cu instantiate it and
// define the leaves that are declared here. A flat array holds tensors one after another.
#pragma once

#include <limits>

#include "espalier/base/fixed_point.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/train/gradient_reduction.hpp"

namespace espalier {

/// The bits of infinity: those of magnitudes ascend with them, and NaN comes last.
inline constexpr std::uint32_t kInfinityBits = 0x7f800000u;

/// What numbers up to `bound`, a float32 by its bits, are counted in: a power of two, or NaN where it is not finite.
/// The product of its reciprocal and a float is exact.
inline ESPALIER_HD double unit_of(std::uint64_t bound, float magnitude, std::int64_t contributions) {
  if (bound >= kInfinityBits) return std::numeric_limits<double>::quiet_NaN();
  return FixedPointScale(static_cast<double>(magnitude), contributions).to_double(1);
}

/// `size` zeros.
template <class Space, class T>
void make_zeros(const Space& space, std::int64_t size, Array<Space, T>& zeros);

/// flat = the tensors times `scale`, or, unless `anew`, flat += them.
template <class Space>
void add_scaled(const Space& space, const std::vector<const Matrix<float, Space>*>& tensors, float scale,
                bool anew, Array<Space, float>& flat);

/// bounds[t] = the bits of the largest magnitude of tensor t in `flat` and of bounds[t]; tensors shaped like `like`.
template <class Space>
void raise_bounds(const Space& space, const Array<Space, float>& flat,
                  const std::vector<Matrix<float, Space>*>& like, Array<Space, std::uint64_t>& bounds);

/// units[t] = unit_of(bounds[t]).
template <class Space>
void find_units(const Space& space, const Array<Space, std::uint64_t>& bounds, std::int64_t contributions,
                Array<Space, double>& units);

/// fixed += `flat` in fixed point; nothing for a tensor without a unit.
template <class Space>
void add_fixed(const Space& space, const Array<Space, float>& flat,
               const std::vector<Matrix<float, Space>*>& like, const Array<Space, double>& units,
               Array<Space, std::int64_t>& fixed);

/// sums = `fixed` in units; NaN for a tensor without one.
template <class Space>
void from_fixed(const Space& space, const Array<Space, std::int64_t>& fixed,
                const Array<Space, double>& units, const std::vector<Matrix<float, Space>*>& sums);

/// sums = `flat`.
template <class Space>
void copy_flat(const Space& space, const Array<Space, float>& flat,
               const std::vector<Matrix<float, Space>*>& sums);

template <class T>
void reduce_flat(const Communicator& comm, Buffer<T>& flat, Reduction reduction) {
  comm.all_reduce(std::span<T>(flat), reduction, "reduce");
}
template <class T>
void reduce_flat(const DeviceCommunicator& comm, DeviceArray<T>& flat, Reduction reduction) {
  comm.all_reduce(flat.data(), static_cast<std::int64_t>(flat.size()), reduction, "reduce");
}

template <class Tensor>
std::int64_t total_size(const std::vector<Tensor*>& tensors) {
  std::int64_t size = 0;
  for (const auto* tensor : tensors) size += static_cast<std::int64_t>(tensor->data.size());
  return size;
}

template <class Space>
void GradientReductionOn<Space>::add(const std::vector<const Matrix<float, Space>*>& tensors, float scale) {
  const bool anew = reproducible_ || contributions_ == 0;
  if (anew && contributions_ == kept_.size()) kept_.emplace_back();
  if (anew) ++contributions_;
  auto& flat = kept_[contributions_ - 1];
  flat.resize(static_cast<std::size_t>(total_size(tensors)));
  add_scaled<Space>(space_, tensors, scale, anew, flat);
}

template <class Space>
void GradientReductionOn<Space>::finish(std::int64_t contributions,
                                        const std::vector<Matrix<float, Space>*>& sums) {
  if (reproducible_)
    finish_exact(contributions, sums);
  else
    finish_float(sums);
  contributions_ = 0;
}

template <class Space>
void GradientReductionOn<Space>::finish_float(const std::vector<Matrix<float, Space>*>& sums) {
  if (kept_.empty()) kept_.emplace_back();
  auto& flat = kept_.front();
  if (contributions_ == 0) make_zeros<Space, float>(space_, total_size(sums), flat);
  reduce_flat(comm_, flat, Reduction::kSum);
  copy_flat<Space>(space_, flat, sums);
}

template <class Space>
void GradientReductionOn<Space>::finish_exact(std::int64_t contributions,
                                              const std::vector<Matrix<float, Space>*>& sums) {
  make_zeros<Space, std::uint64_t>(space_, std::ssize(sums), bounds_);
  for (std::size_t m = 0; m < contributions_; ++m) raise_bounds<Space>(space_, kept_[m], sums, bounds_);
  reduce_flat(comm_, bounds_, Reduction::kMax);
  units_.resize(sums.size());
  find_units<Space>(space_, bounds_, contributions, units_);
  make_zeros<Space, std::int64_t>(space_, total_size(sums), fixed_);
  for (std::size_t m = 0; m < contributions_; ++m) add_fixed<Space>(space_, kept_[m], sums, units_, fixed_);
  reduce_flat(comm_, fixed_, Reduction::kSum);
  from_fixed<Space>(space_, fixed_, units_, sums);
}

}  // namespace espalier
