#include "espalier/train/gradient_reduction.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "espalier/base/fixed_point.hpp"

namespace espalier {

namespace {
std::size_t total_size(const std::vector<Matrix<float>*>& tensors) {
  std::size_t size = 0;
  for (const auto* tensor : tensors) size += tensor->data.size();
  return size;
}
}  // namespace

void GradientReduction::add(const std::vector<const Matrix<float>*>& tensors, float scale) {
  const bool anew = reproducible_ || contributions_ == 0;
  if (anew && contributions_ == kept_.size()) kept_.emplace_back();
  if (anew) ++contributions_;
  auto& flat = kept_[contributions_ - 1];
  std::size_t size = 0;
  for (const auto* tensor : tensors) size += tensor->data.size();
  flat.resize(size);
  float* to = flat.data();
  for (const auto* tensor : tensors) {
    const float* from = tensor->data.data();
    const std::size_t count = tensor->data.size();
    if (anew)
      for (std::size_t k = 0; k < count; ++k) to[k] = from[k] * scale;
    else
      for (std::size_t k = 0; k < count; ++k) to[k] += from[k] * scale;
    to += count;
  }
}

void GradientReduction::finish(std::int64_t contributions, const std::vector<Matrix<float>*>& sums) {
  if (reproducible_)
    finish_exact(contributions, sums);
  else
    finish_float(sums);
  contributions_ = 0;
}

void GradientReduction::finish_float(const std::vector<Matrix<float>*>& sums) {
  if (kept_.empty()) kept_.emplace_back();
  auto& flat = kept_.front();
  if (contributions_ == 0) flat.assign(total_size(sums), 0.0f);
  comm_.all_reduce(std::span<float>(flat), Reduction::kSum, "reduce");
  auto at = flat.begin();
  for (auto* sum : sums) {
    std::copy_n(at, sum->data.size(), sum->data.begin());
    at += std::ssize(sum->data);
  }
}

namespace {

/// The largest magnitude; infinity if any number is not finite.
double largest_magnitude(const float* numbers, std::size_t count) {
  std::uint32_t largest = 0;  // the bits of positive floats ascend with them; infinity and NaN come last
  for (std::size_t k = 0; k < count; ++k)
    largest = std::max(largest, std::bit_cast<std::uint32_t>(numbers[k]) & 0x7fffffffu);
  const float magnitude = std::bit_cast<float>(largest);
  return std::isfinite(magnitude) ? static_cast<double>(magnitude) : std::numeric_limits<double>::infinity();
}

/// fixed[k] += FixedPointScale::to_fixed of number k; all are finite and within the scale's bound. `factor` is the
/// power of two that to_fixed multiplies by; the product of it and a float is exact.
void add_fixed(const float* numbers, std::size_t count, double factor, std::int64_t* fixed) {
  for (std::size_t k = 0; k < count; ++k)
    fixed[k] += static_cast<std::int64_t>(std::rint(static_cast<double>(numbers[k]) * factor));
}

}  // namespace

void GradientReduction::finish_exact(std::int64_t contributions, const std::vector<Matrix<float>*>& sums) {
  const auto for_tensors = [&](const auto& work) {  // work(its number, its place, its size)
    std::size_t at = 0;
    for (std::size_t t = 0; t < sums.size(); at += sums[t]->data.size(), ++t)
      work(t, at, sums[t]->data.size());
  };
  std::vector<double> bound(sums.size(), 0.0);
  for (std::size_t m = 0; m < contributions_; ++m)
    for_tensors([&](std::size_t t, std::size_t at, std::size_t size) {
      bound[t] = std::max(bound[t], largest_magnitude(kept_[m].data() + at, size));
    });
  comm_.all_reduce(std::span<double>(bound), Reduction::kMax, "reduce");

  std::vector<double> unit(sums.size());  // what an integer counts: a power of two
  for (std::size_t t = 0; t < sums.size(); ++t)
    unit[t] = FixedPointScale(std::isfinite(bound[t]) ? bound[t] : 0.0, contributions).to_double(1);
  fixed_.assign(total_size(sums), 0);
  for (std::size_t m = 0; m < contributions_; ++m)
    for_tensors([&](std::size_t t, std::size_t at, std::size_t size) {
      if (!std::isfinite(bound[t])) return;  // has no scale, and its sums are NaN
      add_fixed(kept_[m].data() + at, size, 1.0 / unit[t], fixed_.data() + at);
    });
  comm_.all_reduce(std::span<std::int64_t>(fixed_), Reduction::kSum, "reduce");
  for_tensors([&](std::size_t t, std::size_t at, std::size_t size) {
    float* const sum = sums[t]->data.data();
    const bool finite = std::isfinite(bound[t]);
    for (std::size_t k = 0; k < size; ++k)
      sum[k] = finite ? static_cast<float>(static_cast<double>(fixed_[at + k]) * unit[t])
                      : std::numeric_limits<float>::quiet_NaN();
  });
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
