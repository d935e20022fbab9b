#include "espalier/feature/store.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "espalier/base/fixed_point.hpp"
#include "espalier/base/index_type.hpp"
#include "espalier/base/work.hpp"
#include "espalier/dense/spmm.hpp"
#include "espalier/feature/fetch_model.hpp"

namespace espalier {

namespace {

std::vector<std::int64_t> times(const std::vector<std::int64_t>& counts, std::int64_t factor) {
  std::vector<std::int64_t> scaled;
  for (const auto count : counts) scaled.push_back(count * factor);
  return scaled;
}

void store_value(float& to, float value) {
  to = value;
}
void store_value(Half& to, float value) {
  to = to_half(value);
}

}  // namespace

FeatureStore::FeatureStore(const Grid& grid, RowPartition partition, Matrix<float> local)
    : grid_(&grid), partition_(std::move(partition)), block_(std::move(local)) {}

FeatureStore::FeatureStore(const Grid& grid, RowPartition partition, Matrix<Half> local)
    : grid_(&grid), partition_(std::move(partition)), block_(std::move(local)) {}

std::int64_t FeatureStore::width() const {
  return std::visit([](const auto& local) { return local.columns; }, block_);
}

std::int64_t FeatureStore::bytes() const {
  return std::visit(
      [](const auto& local) { return static_cast<std::int64_t>(local.data.size() * sizeof local.data[0]); },
      block_);
}

void FeatureStore::fetch(const Cpu& cpu, std::span<const std::span<const std::int64_t>> lists,
                         std::vector<Matrix<float>>& rows, std::string_view label) const {
  begin_fetch(cpu, lists, fetch_, label);
  finish_fetch(cpu, fetch_, rows);
}

void FeatureStore::begin_fetch(const Cpu& cpu, std::span<const std::span<const std::int64_t>> lists,
                               PendingFetch& fetch, std::string_view label) const {
  with_index_type(partition_.rows(), [&]<class Id>(Id) { ask<Id>(cpu, lists, fetch, label); });
}

// Asks for the rows of the lists, and sends those that were asked of me.
template <class Id>
void FeatureStore::ask(const Cpu& cpu, std::span<const std::span<const std::int64_t>> lists,
                       PendingFetch& fetch, std::string_view label) const {
  auto& question = fetch.question<Id>();
  plan(lists, fetch, question.wanted);
  if (partition_.parts() == 1) return;
  const auto& column = grid_->column_comm();
  fetch.asked_counts_ = column.exchange_counts(fetch.counts_, label);
  column.all_to_all_v(std::span<const Id>(question.wanted), fetch.counts_, fetch.asked_counts_,
                      question.asked, label);
  std::visit([&](const auto& local) { reply(cpu, local, question.asked, fetch, label); }, block_);
}

void FeatureStore::finish_fetch(const Cpu& cpu, PendingFetch& fetch, std::vector<Matrix<float>>& rows) const {
  fetch.exchange_.finish();
  std::visit([&](const auto& local) { place(cpu, local, fetch, rows); }, block_);
}

void FeatureStore::aggregate(const Cpu& cpu, const BlockView<Cpu>& block, std::span<const std::int64_t> ids,
                             Matrix<float>& y) const {
  ESPALIER_CHECK(all_local(), "rows of {} other ranks", partition_.parts() - 1);
  y.resize(block.rows, width());
  std::visit([&]<class T>(const Matrix<T>& local) { spmm_gathered<T>(cpu, block, ids, local, y); }, block_);
}

// Groups the ids that others own by owner, and remembers where each row will come from.
template <class Id>
void FeatureStore::plan(std::span<const std::span<const std::int64_t>> lists, PendingFetch& fetch,
                        Buffer<Id>& wanted) const {
  const int me = grid_->row();
  fetch.sizes_.clear();
  fetch.source_.clear();
  fetch.counts_.assign(static_cast<std::size_t>(partition_.parts()), 0);
  for (const auto& list : lists) {
    fetch.sizes_.push_back(std::ssize(list));
    for (const auto id : list) {
      const int owner = partition_.owner(id);
      fetch.source_.push_back(owner);  // its place follows when all owners are counted
      if (owner != me) ++fetch.counts_[static_cast<std::size_t>(owner)];
    }
  }
  std::vector<std::int64_t> next(fetch.counts_.size());
  std::exclusive_scan(fetch.counts_.begin(), fetch.counts_.end(), next.begin(), std::int64_t{0});
  wanted.resize(
      static_cast<std::size_t>(std::accumulate(fetch.counts_.begin(), fetch.counts_.end(), std::int64_t{0})));
  auto source = fetch.source_.begin();
  for (const auto& list : lists)
    for (const auto id : list) {
      if (*source == me) {
        *source = ~(id - partition_.begin(me));
      } else {
        *source = next[static_cast<std::size_t>(*source)]++;
        wanted[static_cast<std::size_t>(*source)] = static_cast<Id>(id);
      }
      ++source;
    }
  const auto rows = static_cast<double>(fetch.source_.size());
  charge(Work{.gathers = rows, .bytes = (16 + sizeof(Id)) * rows, .launches = 4});
}

// Sends the rows that were asked for.
template <class T, class Id>
void FeatureStore::reply(const Cpu& cpu, const Matrix<T>& local, const Buffer<Id>& asked, PendingFetch& fetch,
                         std::string_view label) const {
  const auto row_bytes = local.columns * static_cast<std::int64_t>(sizeof(T));
  const auto first = partition_.begin(grid_->row());
  fetch.reply_.resize(asked.size() * static_cast<std::size_t>(row_bytes));
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
  for (std::int64_t k = 0; k < std::ssize(asked); ++k)
    std::copy_n(reinterpret_cast<const std::byte*>(local.row(asked[static_cast<std::size_t>(k)] - first)),
                row_bytes, fetch.reply_.data() + k * row_bytes);
  charge(Work{.gathers = static_cast<double>(asked.size()),
              .bytes = 2.0 * static_cast<double>(fetch.reply_.size())});
  const auto& column = grid_->column_comm();
  fetch.exchange_ = column.begin_all_to_all_v(std::span<const std::byte>(fetch.reply_),
                                              times(fetch.asked_counts_, row_bytes),
                                              times(fetch.counts_, row_bytes), fetch.arrived_, label);
  predict_fetch(column, label, partition_.rows(), std::ssize(fetch.source_), row_bytes);
}

template <class T>
void FeatureStore::place(const Cpu& cpu, const Matrix<T>& local, const PendingFetch& fetch,
                         std::vector<Matrix<float>>& rows) const {
  const auto* arrived = reinterpret_cast<const T*>(fetch.arrived_.data());
  const auto* source = fetch.source_.data();
  if (rows.size() < fetch.sizes_.size()) rows.resize(fetch.sizes_.size());
  for (std::size_t m = 0; m < fetch.sizes_.size(); ++m) {
    rows[m].resize(fetch.sizes_[m], local.columns);
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
    for (std::int64_t k = 0; k < rows[m].rows; ++k)
      to_floats(source[k] < 0 ? local.row(~source[k]) : arrived + source[k] * local.columns, rows[m].row(k),
                local.columns);
    source += rows[m].rows;
  }
  const auto placed = static_cast<double>(fetch.source_.size());
  charge(Work{.gathers = placed, .bytes = placed * static_cast<double>(local.columns) * (sizeof(T) + 4.0)});
}

void FeatureStore::normalize_rows() {
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

// The exact sum over all vertices of term(column, value), column by column: fixed point with each column's
// own bound.
template <class T, class Term>
std::vector<double> column_sums(const Matrix<T>& local, const Communicator& column, std::int64_t vertices,
                                Term term) {
  std::vector<double> bound(static_cast<std::size_t>(local.columns), 0.0);
  for (std::int64_t i = 0; i < local.rows; ++i)
    for (std::int64_t j = 0; j < local.columns; ++j) {
      auto& largest = bound[static_cast<std::size_t>(j)];
      largest = std::max(largest, std::abs(term(j, static_cast<double>(to_float(local(i, j))))));
    }
  column.all_reduce(std::span<double>(bound), Reduction::kMax, "setup");
  std::vector<FixedPointScale> scale;
  for (const double largest : bound) scale.emplace_back(largest, vertices);
  std::vector<std::int64_t> fixed(bound.size(), 0);
  for (std::int64_t i = 0; i < local.rows; ++i)
    for (std::int64_t j = 0; j < local.columns; ++j)
      fixed[static_cast<std::size_t>(j)] +=
          scale[static_cast<std::size_t>(j)].to_fixed(term(j, static_cast<double>(to_float(local(i, j)))));
  column.all_reduce(std::span<std::int64_t>(fixed), Reduction::kSum, "setup");
  std::vector<double> sums;
  for (std::size_t j = 0; j < fixed.size(); ++j) sums.push_back(scale[j].to_double(fixed[j]));
  return sums;
}

}  // namespace

void FeatureStore::standardize() {
  const auto n = partition_.rows();
  const auto& column = grid_->column_comm();
  std::visit(
      [&](auto& local) {
        auto mean = column_sums(local, column, n, [](std::int64_t, double x) { return x; });
        for (auto& m : mean) m /= static_cast<double>(n);
        auto deviation = column_sums(local, column, n, [&](std::int64_t j, double x) {
          const double difference = x - mean[static_cast<std::size_t>(j)];
          return difference * difference;
        });
        for (auto& d : deviation) d = d > 0 ? std::sqrt(d / static_cast<double>(n)) : 1.0;
        for (std::int64_t i = 0; i < local.rows; ++i)
          for (std::int64_t j = 0; j < local.columns; ++j) {
            const auto k = static_cast<std::size_t>(j);
            store_value(local(i, j), static_cast<float>((to_float(local(i, j)) - mean[k]) / deviation[k]));
          }
        standardization_ = {std::move(mean), std::move(deviation)};
      },
      block_);
}

}  // namespace espalier
