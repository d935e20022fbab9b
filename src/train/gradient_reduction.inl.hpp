// What GradientReductionOn does, for every space: gradient_reduction.cpp and gradient_reduction.cu
// instantiate it and define the kernels that are declared here. A flat array holds tensors one
// after another.
#pragma once

#include <cmath>
#include <limits>

#include "espalier/base/arrays.hpp"
#include "espalier/base/fixed_point.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/dense/first_not_finite.hpp"
#include "espalier/train/gradient_reduction.hpp"

// A list of tensors whose elements are visited one by one, by every space.
namespace espalier::tensor_list {

template <class T>
struct Tensor {
  T* data;
  std::int64_t size;
  std::int64_t at;  ///< its place in an array of all tensors one after another
  int number;       ///< its place in the list
};

template <class T>
std::int64_t total_size(const std::vector<Tensor<T>>& tensors) {
  return tensors.empty() ? 0 : tensors.back().at + tensors.back().size;
}

/// Matrices or constant matrices by pointers.
template <class T, class MatrixPointer>
std::vector<Tensor<T>> list_of(const std::vector<MatrixPointer>& matrices) {
  std::vector<Tensor<T>> list;
  for (const auto* matrix : matrices)
    list.push_back({const_cast<T*>(matrix->data.data()), static_cast<std::int64_t>(matrix->data.size()),
                    total_size(list), static_cast<int>(list.size())});
  return list;
}

/// Tensors of the same sizes that lie one after another from `flat` on.
template <class T, class U>
std::vector<Tensor<T>> list_like(const std::vector<Tensor<U>>& tensors, T* flat) {
  std::vector<Tensor<T>> list;
  for (const auto& t : tensors) list.push_back({flat + t.at, t.size, t.at, t.number});
  return list;
}

/// function(tensor, place, element) for every element: the number of its tensor, its place in an
/// array of all tensors one after another, and itself. `name`: of the kernel on a GPU.
template <class T, class Function>
void for_each_element(const Cpu&, const char*, const std::vector<Tensor<T>>& tensors,
                      const Function& function) {
  for (const Tensor<T> tensor : tensors)
    for (std::int64_t k = 0; k < tensor.size; ++k) function(tensor.number, tensor.at + k, tensor.data[k]);
}

}  // namespace espalier::tensor_list

namespace espalier {

using tensor_list::list_like, tensor_list::list_of, tensor_list::Tensor;

inline constexpr double kNoUnit = std::numeric_limits<double>::quiet_NaN();

/// `size` zeros.
template <class Space, class Numbers>
void make_zeros(const Space& space, std::int64_t size, Numbers& zeros) {
  zeros.resize(size);
  fill_zero(space, zeros);
}

/// bounds[t] = the bits of the largest magnitude of tensor t and of bounds[t].
template <class Space>
void raise_bounds(const Space& space, const std::vector<Tensor<const float>>& tensors,
                  Array<Space, std::uint64_t>& bounds);

/// units[t] = what numbers up to bounds[t] are counted in: a power of two, or NaN where the bound
/// is not finite.
template <class Space>
void find_units(const Space& space, const Array<Space, std::uint64_t>& bounds, std::int64_t contributions,
                Array<Space, double>& units);

inline ESPALIER_HD double unit_of(std::uint64_t bound, float magnitude, std::int64_t contributions) {
  if (bound >= kInfinityBits) return kNoUnit;
  return FixedPointScale(static_cast<double>(magnitude), contributions).to_double(1);
}

/// to = the tensors times `scale`, or, unless `anew`, to += them.
template <class Space>
void add_scaled(const Space& space, const std::vector<Tensor<const float>>& tensors, float scale, bool anew,
                float* to) {
  for_each_element(space, "gradient sum", tensors, [=] ESPALIER_HD(int, std::int64_t at, const float& x) {
    const float scaled = x * scale;
    to[at] = anew ? scaled : to[at] + scaled;
  });
}

/// fixed += the numbers in fixed point; nothing for a tensor without a unit. The product of a
/// unit's reciprocal and a float is exact.
template <class Space>
void add_fixed(const Space& space, const std::vector<Tensor<const float>>& tensors, const double* units,
               std::int64_t* fixed) {
  for_each_element(space, "gradient fixed point", tensors,
                   [=] ESPALIER_HD(int t, std::int64_t at, const float& x) {
                     const double factor = 1.0 / units[t];
                     if (factor == factor)
                       fixed[at] += static_cast<std::int64_t>(std::rint(static_cast<double>(x) * factor));
                   });
}

/// NaN for a tensor without a unit.
template <class Space>
void from_fixed(const Space& space, const std::int64_t* fixed, const double* units,
                const std::vector<Tensor<float>>& to) {
  for_each_element(space, "gradient result", to, [=] ESPALIER_HD(int t, std::int64_t at, float& x) {
    x = static_cast<float>(static_cast<double>(fixed[at]) * units[t]);
  });
}

/// The tensors = from; or, with `adds`, from + themselves.
template <class Space>
void take_flat(const Space& space, const float* from, bool adds, const std::vector<Tensor<float>>& to) {
  for_each_element(space, "gradient result", to,
                   [=] ESPALIER_HD(int, std::int64_t at, float& x) { x = adds ? from[at] + x : from[at]; });
}

template <class T>
void reduce_flat(const Communicator& comm, Buffer<T>& flat, Reduction reduction) {
  comm.all_reduce(std::span<T>(flat), reduction, "reduce");
}
template <class T>
void reduce_flat(const DeviceCommunicator& comm, DeviceArray<T>& flat, Reduction reduction) {
  comm.all_reduce(flat.data(), static_cast<std::int64_t>(flat.size()), reduction, "reduce");
}

template <class Space>
void GradientReductionOn<Space>::add(const std::vector<const Matrix<float, Space>*>& tensors, float scale) {
  const bool anew = reproducible_ || contributions_ == 0;
  if (anew && contributions_ == kept_.size()) kept_.emplace_back();
  if (anew) ++contributions_;
  auto& flat = kept_[contributions_ - 1];
  const auto list = list_of<const float>(tensors);
  flat.resize(total_size(list));
  add_scaled(space_, list, scale, anew, flat.data());
}

/// The array of which the tensors are all; null: they are of several.
inline DeviceArray<float>* whole_of(const std::vector<Matrix<float, Cuda>*>& tensors) {
  if (tensors.empty()) return nullptr;
  auto* const whole = tensors.front()->data.whole().get();
  std::size_t numbers = 0;
  for (const auto* tensor : tensors) {
    if (tensor->data.whole().get() != whole) return nullptr;
    numbers += tensor->data.size();
  }
  return whole != nullptr && whole->size() == numbers ? whole : nullptr;
}

template <class Space>
void GradientReductionOn<Space>::leave_last() requires std::is_same_v<Space, Cuda> {
  last_is_left_ = true;
}

// In the order of contributions, as add() does.
template <class Space>
void GradientReductionOn<Space>::add_up_in_place(
    const Sums& sums, DeviceArray<float>& whole) requires std::is_same_v<Space, Cuda> {
  const auto to = list_of<float>(sums);
  if (contributions_ == 0 && !last_is_left_)
    fill_zero(space_, whole);
  else if (contributions_ > 0)
    take_flat(space_, kept_.front().data(), last_is_left_, to);
  comm_.all_reduce(whole.data(), std::ssize(whole), Reduction::kSum, "reduce");
}

template <class Space>
void GradientReductionOn<Space>::finish(std::int64_t contributions, const Sums& sums) {
  if constexpr (std::is_same_v<Space, Cpu>) {
    while (!advance(/*waits=*/true)) continue;
  } else if (auto* const whole = reproducible_ ? nullptr : whole_of(sums)) {
    add_up_in_place(sums, *whole);
    contributions_ = 0;
    last_is_left_ = false;
    return;
  }
  ESPALIER_CHECK(!last_is_left_, "a contribution was left in {} tensors of several arrays", sums.size());
  if (stage_ == Stage::kNotBegun) {
    if (reproducible_) {
      find_bounds(sums);
      reduce_flat(comm_, bounds_, Reduction::kMax);
      add_up_fixed(contributions, sums);
      reduce_flat(comm_, fixed_, Reduction::kSum);
    } else {
      have_floats(total_size(list_of<float>(sums)));
      reduce_flat(comm_, kept_.front(), Reduction::kSum);
    }
  }
  put_sums(sums);
  stage_ = Stage::kNotBegun;
  contributions_ = 0;
}

// A rank without a minibatch adds nothing.
template <class Space>
void GradientReductionOn<Space>::have_floats(std::int64_t numbers) {
  if (kept_.empty()) kept_.emplace_back();
  if (contributions_ == 0) make_zeros(space_, numbers, kept_.front());
}

template <class Space>
void GradientReductionOn<Space>::find_bounds(const Sums& sums) {
  const auto shapes = list_of<float>(sums);
  make_zeros(space_, std::ssize(shapes), bounds_);
  for (std::size_t m = 0; m < contributions_; ++m)
    raise_bounds<Space>(space_, list_like<const float>(shapes, kept_[m].data()), bounds_);
}

template <class Space>
void GradientReductionOn<Space>::add_up_fixed(std::int64_t contributions, const Sums& sums) {
  const auto shapes = list_of<float>(sums);
  units_.resize(shapes.size());
  find_units<Space>(space_, bounds_, contributions, units_);
  make_zeros(space_, total_size(shapes), fixed_);
  for (std::size_t m = 0; m < contributions_; ++m)
    add_fixed(space_, list_like<const float>(shapes, kept_[m].data()), units_.data(), fixed_.data());
}

template <class Space>
void GradientReductionOn<Space>::put_sums(const Sums& sums) {
  const auto to = list_of<float>(sums);
  if (reproducible_)
    from_fixed(space_, fixed_.data(), units_.data(), to);
  else
    take_flat(space_, kept_.front().data(), /*adds=*/false, to);
}

template <class Space>
void GradientReductionOn<Space>::begin(std::int64_t contributions, const Sums& sums,
                                       int number) requires std::is_same_v<Space, Cpu> {
  begun_contributions_ = contributions;
  begun_sums_ = sums;
  number_ = 2 * number;
  if (reproducible_) {
    find_bounds(sums);
    pending_bounds_.begin(comm_, bounds_, Reduction::kMax, number_, "reduce");
    stage_ = Stage::kBounds;
  } else {
    have_floats(total_size(list_of<float>(sums)));
    pending_floats_.begin(comm_, kept_.front(), Reduction::kSum, number_, "reduce");
    stage_ = Stage::kSums;
  }
}

template <class Space>
bool GradientReductionOn<Space>::advance(bool waits) requires std::is_same_v<Space, Cpu> {
  if (stage_ == Stage::kBounds && pending_bounds_.advance(waits)) {
    add_up_fixed(begun_contributions_, begun_sums_);
    pending_fixed_.begin(comm_, fixed_, Reduction::kSum, number_ + 1, "reduce");
    stage_ = Stage::kSums;
    return false;
  }
  if (stage_ == Stage::kSums &&
      (reproducible_ ? pending_fixed_.advance(waits) : pending_floats_.advance(waits)))
    stage_ = Stage::kArrived;
  return stage_ == Stage::kNotBegun || stage_ == Stage::kArrived;
}

// ---- a network's ----

template <class Space>
NetworkReductionOn<Space>::NetworkReductionOn(const Space& space, const CommunicatorOn<Space>& comm,
                                              bool reproducible, std::vector<GradientGroup> groups)
    : reproducible_(reproducible),
      ends_(std::is_same_v<Space, Cpu> ? reduction_pieces(groups, comm.size())
                                       : std::vector<std::size_t>{groups.size()}) {
  std::size_t group = 0;
  for (const auto end : ends_) {
    auto& piece = pieces_.emplace_back();
    piece.reduction = std::make_unique<GradientReductionOn<Space>>(space, comm, reproducible);
    for (; group < end; ++group)
      for (std::size_t k = 0; k < groups[group].count; ++k) piece.tensors.push_back(groups[group].first + k);
  }
}

template <class Space>
template <class OneMatrix, class Of>
std::vector<OneMatrix*> NetworkReductionOn<Space>::tensors_of(const Piece& piece, Of& gradients) {
  std::vector<OneMatrix*> tensors;
  for (const auto k : piece.tensors) tensors.push_back(&gradients[k]);
  return tensors;
}

template <class Space>
void NetworkReductionOn<Space>::add(const Gradients& gradients, bool last) {
  if constexpr (std::is_same_v<Space, Cuda>)
    if (last && !reproducible_) return pieces_.front().reduction->leave_last();
  for (auto& piece : pieces_) piece.reduction->add(tensors_of<const Matrix<float, Space>>(piece, gradients));
}

template <class Space>
void NetworkReductionOn<Space>::add_groups(Gradients& gradients, std::size_t groups,
                                           std::int64_t contributions) {
  ESPALIER_CHECK(in_pieces(), "{} groups of one piece", groups);
  advance_from(0, /*waits=*/false);
  std::size_t until = begun_;
  for (; until < pieces_.size() && ends_[until] <= groups; ++until)
    pieces_[until].reduction->add(tensors_of<const Matrix<float, Space>>(pieces_[until], gradients));
  begin_pieces(until, gradients, contributions);
}

// Pieces below `until`, whose contributions of this rank are all there.
template <class Space>
void NetworkReductionOn<Space>::begin_pieces(std::size_t until, Gradients& gradients,
                                             std::int64_t contributions) {
  if constexpr (std::is_same_v<Space, Cpu>)
    for (; begun_ < until; ++begun_)
      pieces_[begun_].reduction->begin(contributions,
                                       tensors_of<Matrix<float, Space>>(pieces_[begun_], gradients),
                                       static_cast<int>(begun_));
}

// `waits` for messages of the first, and looks for those of the others. Has the first all?
template <class Space>
bool NetworkReductionOn<Space>::advance_from(std::size_t first, bool waits) {
  bool arrived = true;
  if constexpr (std::is_same_v<Space, Cpu>)
    for (std::size_t k = first; k < begun_; ++k) {
      const bool has_all = pieces_[k].reduction->advance(waits && k == first);
      if (k == first) arrived = has_all;
    }
  return arrived;
}

template <class Space>
void NetworkReductionOn<Space>::finish(std::int64_t contributions, Gradients& gradients) {
  if (in_pieces()) begin_pieces(pieces_.size(), gradients, contributions);
  for (std::size_t k = 0; k < pieces_.size(); ++k) {
    while (!advance_from(k, /*waits=*/true)) continue;
    pieces_[k].reduction->finish(contributions, tensors_of<Matrix<float, Space>>(pieces_[k], gradients));
  }
  begun_ = 0;
}

}  // namespace espalier
