// Normalisation of a store in memory of the host, before it is used or copied to a GPU.
#include <algorithm>
#include <cmath>
#include <utility>

#include "espalier/base/error.hpp"
#include "espalier/base/fixed_point.hpp"
#include "espalier/feature/store.hpp"

namespace espalier {

namespace {

void store_value(float& to, float value) {
  to = value;
}
void store_value(Half& to, float value) {
  to = to_half(value);
}

}  // namespace

template <class Space>
void FeatureStoreOn<Space>::normalize_rows() requires std::is_same_v<Space, Cpu> {
  std::visit(
      [](auto& local) {
        for (std::int64_t i = 0; i < local.rows; ++i) {
          double sum = 0;
          for (std::int64_t j = 0; j < local.columns; ++j)
            sum += std::abs(static_cast<double>(to_float(local(i, j))));
          if (sum == 0) continue;
          for (std::int64_t j = 0; j < local.columns; ++j)
            store_value(local(i, j), static_cast<float>(to_float(local(i, j)) / sum));
        }
      },
      block_);
}

namespace {

// The exact sum over all vertices of term(column, value), column by column: fixed point with each
// column's own bound.
template <class T, class Term>
std::vector<double> column_sums(const Matrix<T>& local, const Communicator& column, std::int64_t vertices,
                                Term term) {
  std::vector<double> bound(local.columns, 0.0);
  for (std::int64_t i = 0; i < local.rows; ++i)
    for (std::int64_t j = 0; j < local.columns; ++j) {
      auto& largest = bound[j];
      largest = std::max(largest, std::abs(term(j, static_cast<double>(to_float(local(i, j))))));
    }
  column.all_reduce(std::span<double>(bound), Reduction::kMax, "setup");
  std::vector<FixedPointScale> scale;
  for (const double largest : bound) scale.emplace_back(largest, vertices);
  std::vector<std::int64_t> fixed(bound.size(), 0);
  for (std::int64_t i = 0; i < local.rows; ++i)
    for (std::int64_t j = 0; j < local.columns; ++j)
      fixed[j] += scale[j].to_fixed(term(j, static_cast<double>(to_float(local(i, j)))));
  column.all_reduce(std::span<std::int64_t>(fixed), Reduction::kSum, "setup");
  std::vector<double> sums;
  for (std::size_t j = 0; j < fixed.size(); ++j) sums.push_back(scale[j].to_double(fixed[j]));
  return sums;
}

}  // namespace

template <class Space>
void FeatureStoreOn<Space>::standardize() requires std::is_same_v<Space, Cpu> {
  const auto n = ownership_.rows();
  const auto& column = grid_->column_comm();
  Standardization measured;
  std::visit(
      [&](const auto& local) {
        auto mean = column_sums(local, column, n, [](std::int64_t, double x) { return x; });
        for (auto& m : mean) m /= static_cast<double>(n);
        auto deviation = column_sums(local, column, n, [&](std::int64_t j, double x) {
          const double difference = x - mean[j];
          return difference * difference;
        });
        for (auto& d : deviation) d = d > 0 ? std::sqrt(d / static_cast<double>(n)) : 1.0;
        measured = {std::move(mean), std::move(deviation)};
      },
      block_);
  standardize(std::move(measured));
}

template <class Space>
void FeatureStoreOn<Space>::standardize(Standardization by) requires std::is_same_v<Space, Cpu> {
  ESPALIER_CHECK(std::ssize(by.mean) == width() && std::ssize(by.deviation) == width(),
                 "means of {} columns for {}", by.mean.size(), width());
  standardization_ = std::move(by);
  const auto &mean = standardization_.mean, &deviation = standardization_.deviation;
  std::visit(
      [&](auto& local) {
        for (std::int64_t i = 0; i < local.rows; ++i)
          for (std::int64_t j = 0; j < local.columns; ++j)
            store_value(local(i, j), static_cast<float>((to_float(local(i, j)) - mean[j]) / deviation[j]));
      },
      block_);
}

template void FeatureStore::normalize_rows();
template void FeatureStore::standardize();
template void FeatureStore::standardize(Standardization);

}  // namespace espalier
