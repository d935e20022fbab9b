#include "espalier/train/gradient_reduction.hpp"

#include <algorithm>
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
  if (reproducible_ || kept_.empty()) {
    auto& flat = kept_.emplace_back();
    for (const auto* tensor : tensors)
      for (const float x : tensor->data) flat.push_back(x * scale);
    return;
  }
  auto at = kept_.front().begin();
  for (const auto* tensor : tensors)
    for (const float x : tensor->data) *at++ += x * scale;
}

void GradientReduction::finish(std::int64_t contributions, const std::vector<Matrix<float>*>& sums) {
  if (reproducible_)
    finish_exact(contributions, sums);
  else
    finish_float(sums);
  kept_.clear();
}

void GradientReduction::finish_float(const std::vector<Matrix<float>*>& sums) {
  Buffer<float> flat = kept_.empty() ? Buffer<float>(total_size(sums), 0.0f) : std::move(kept_.front());
  comm_.all_reduce(std::span<float>(flat), Reduction::kSum, "reduce");
  auto at = flat.begin();
  for (auto* sum : sums) {
    std::copy_n(at, sum->data.size(), sum->data.begin());
    at += std::ssize(sum->data);
  }
}

void GradientReduction::finish_exact(std::int64_t contributions, const std::vector<Matrix<float>*>& sums) {
  std::vector<double> bound(sums.size(), 0.0);
  for (const auto& flat : kept_) {
    std::size_t at = 0;
    for (std::size_t t = 0; t < sums.size(); ++t)
      for (std::size_t k = 0; k < sums[t]->data.size(); ++k, ++at) {
        const double magnitude = std::abs(static_cast<double>(flat[at]));
        bound[t] = std::isfinite(magnitude) ? std::max(bound[t], magnitude)
                                            : std::numeric_limits<double>::infinity();
      }
  }
  comm_.all_reduce(std::span<double>(bound), Reduction::kMax, "reduce");

  Buffer<std::int64_t> fixed(total_size(sums), 0);
  for (const auto& flat : kept_) {
    std::size_t at = 0;
    for (std::size_t t = 0; t < sums.size(); ++t) {
      const FixedPointScale scale(std::isfinite(bound[t]) ? bound[t] : 0.0, contributions);
      for (std::size_t k = 0; k < sums[t]->data.size(); ++k, ++at)
        if (std::isfinite(flat[at])) fixed[at] += scale.to_fixed(flat[at]);
    }
  }
  comm_.all_reduce(std::span<std::int64_t>(fixed), Reduction::kSum, "reduce");
  std::size_t at = 0;
  for (std::size_t t = 0; t < sums.size(); ++t) {
    const bool finite = std::isfinite(bound[t]);
    const FixedPointScale scale(finite ? bound[t] : 0.0, contributions);
    for (auto& x : sums[t]->data) {
      x = finite ? static_cast<float>(scale.to_double(fixed[at])) : std::numeric_limits<float>::quiet_NaN();
      ++at;
    }
  }
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
