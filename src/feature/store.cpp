#include "espalier/feature/store.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "espalier/base/fixed_point.hpp"

namespace espalier {

namespace {

// Where each id's row comes from: the requests by owner, list by list, and for every id in the same order its
// destination.
struct FetchPlan {
  std::vector<std::int64_t> counts;                  // [owners]
  Buffer<std::int64_t> ids;                          // grouped by owner
  std::vector<float*> destinations;                  // [ids]
  std::vector<std::pair<std::int64_t, float*>> own;  // local row, destination
};

FetchPlan plan_fetch(const RowPartition& partition, int me,
                     std::span<const std::span<const std::int64_t>> lists, std::vector<Matrix<float>>& rows) {
  FetchPlan plan;
  plan.counts.assign(static_cast<std::size_t>(partition.parts()), 0);
  std::vector<int> owner;
  for (const auto& list : lists)
    for (const auto id : list) {
      owner.push_back(partition.owner(id));
      if (owner.back() != me) ++plan.counts[static_cast<std::size_t>(owner.back())];
    }
  std::vector<std::int64_t> next(plan.counts.size());
  std::exclusive_scan(plan.counts.begin(), plan.counts.end(), next.begin(), std::int64_t{0});
  const auto remote = std::accumulate(plan.counts.begin(), plan.counts.end(), std::int64_t{0});
  plan.ids.resize(static_cast<std::size_t>(remote));
  plan.destinations.resize(static_cast<std::size_t>(remote));
  std::size_t k = 0;
  for (std::size_t m = 0; m < lists.size(); ++m)
    for (std::size_t i = 0; i < lists[m].size(); ++i, ++k) {
      float* destination = rows[m].row(static_cast<std::int64_t>(i));
      if (owner[k] == me) {
        plan.own.emplace_back(lists[m][i] - partition.begin(me), destination);
      } else {
        const auto at = static_cast<std::size_t>(next[static_cast<std::size_t>(owner[k])]++);
        plan.ids[at] = lists[m][i];
        plan.destinations[at] = destination;
      }
    }
  return plan;
}

// A row travels as one element of `width` values, so counts are rows.
std::vector<std::int64_t> times(const std::vector<std::int64_t>& counts, std::int64_t width) {
  std::vector<std::int64_t> scaled;
  for (const auto count : counts) scaled.push_back(count * width);
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
    : grid_(&grid), partition_(std::move(partition)), block_(Block<float>{std::move(local), {}, {}}) {}

FeatureStore::FeatureStore(const Grid& grid, RowPartition partition, Matrix<Half> local)
    : grid_(&grid), partition_(std::move(partition)), block_(Block<Half>{std::move(local), {}, {}}) {}

std::int64_t FeatureStore::width() const {
  return std::visit([](const auto& block) { return block.rows.columns; }, block_);
}

std::int64_t FeatureStore::bytes() const {
  return std::visit(
      [](const auto& block) {
        return static_cast<std::int64_t>(block.rows.data.size() * sizeof block.rows.data[0]);
      },
      block_);
}

void FeatureStore::fetch(const Cpu& cpu, std::span<const std::span<const std::int64_t>> lists,
                         std::vector<Matrix<float>>& rows, std::string_view label) const {
  std::visit([&](auto& block) { fetch_as(cpu, block, lists, rows, label); }, block_);
}

template <class T>
void FeatureStore::fetch_as(const Cpu& cpu, Block<T>& block,
                            std::span<const std::span<const std::int64_t>> lists,
                            std::vector<Matrix<float>>& rows, std::string_view label) const {
  const auto width = block.rows.columns;
  rows.resize(lists.size());
  for (std::size_t m = 0; m < lists.size(); ++m) rows[m].resize(std::ssize(lists[m]), width);
  const auto plan = plan_fetch(partition_, grid_->row(), lists, rows);

  if (partition_.parts() > 1) {
    const auto& column = grid_->column_comm();
    const auto asked = column.all_to_all_v(std::span<const std::int64_t>(plan.ids), plan.counts, label);
    block.reply.resize(asked.data.size() * static_cast<std::size_t>(width));
    const auto first = partition_.begin(grid_->row());
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
    for (std::int64_t k = 0; k < std::ssize(asked.data); ++k)
      std::copy_n(block.rows.row(asked.data[static_cast<std::size_t>(k)] - first), width,
                  block.reply.data() + k * width);
    column.all_to_all_v(std::span<const T>(block.reply), times(asked.counts, width),
                        times(plan.counts, width), block.arrived, label);
    // The model: rows lie evenly over the block rows, an id and a row for each that lies elsewhere.
    const double peers = partition_.parts() - 1,
                 wanted = static_cast<double>(plan.ids.size() + plan.own.size());
    column.traffic().predict(
        label, 3 * peers,
        8 * peers + wanted * peers / partition_.parts() *
                        (8 + static_cast<double>(sizeof(T)) * static_cast<double>(width)));
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
    for (std::int64_t k = 0; k < std::ssize(plan.destinations); ++k)
      to_floats(block.arrived.data() + k * width, plan.destinations[static_cast<std::size_t>(k)], width);
  }
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
  for (std::int64_t k = 0; k < std::ssize(plan.own); ++k) {
    const auto& [row, destination] = plan.own[static_cast<std::size_t>(k)];
    to_floats(block.rows.row(row), destination, width);
  }
}

void FeatureStore::normalize_rows() {
  std::visit(
      [](auto& block) {
        auto& local = block.rows;
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
      [&](auto& block) {
        auto& local = block.rows;
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
      },
      block_);
}

FeatureStore read_feature_store(const Grid& grid, const GraphFile& file, const std::string& feature_norm) {
  const auto& info = file.info();
  if (info.features == 0)
    input_error("{}: the graph has no features (/nodes/features), so there is nothing to train on",
                file.path());
  auto partition = block_partition(info.nodes, grid.rows());
  const auto begin = partition.begin(grid.row()), end = partition.end(grid.row());
  auto store = info.half_features ? FeatureStore(grid, partition, file.read_features<Half>(begin, end))
                                  : FeatureStore(grid, partition, file.read_features<float>(begin, end));
  if (feature_norm == "row") store.normalize_rows();
  if (feature_norm == "standard") store.standardize();
  return store;
}

}  // namespace espalier
