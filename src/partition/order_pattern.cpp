#include "order_pattern.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "espalier/base/error.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/mix.hpp"
#include "symmetric_pattern.hpp"

namespace espalier {

namespace {

constexpr const char* kPatternLabel = "order";

std::uint64_t edge_hash(std::int64_t row, std::int64_t column) {
  return absorb(absorb(0, row), column);
}

// Collective. The pieces of all ranks on rank 0.
template <class T>
Buffer<T> gather(const Communicator& world, std::span<const T> mine) {
  std::vector<std::int64_t> counts(world.size(), 0);
  counts[0] = std::ssize(mine);
  return world.all_to_all_v(mine, counts, kPatternLabel).data;
}

}  // namespace

std::uint64_t asymmetry_of(const Csr<std::int64_t>& rows, std::int64_t first) {
  std::uint64_t difference = 0;
  for (std::int64_t i = 0; i < rows.rows; ++i)
    for (const auto u : rows.row_indices(i)) difference += edge_hash(first + i, u) - edge_hash(u, first + i);
  return difference;
}

Csr<std::int64_t> symmetric_rows(const OrderTask& task) {
  const auto mine = task.mine();
  auto rows = task.read_rows(mine.begin, mine.end);
  rows.values = {};
  if (task.world.all_reduce(asymmetry_of(rows, mine.begin), Reduction::kSum, kPatternLabel) != 0)
    log::info("the graph is directed: an edge in either direction counts as one in both");
  return symmetric_pattern(task.world, std::move(rows));
}

WholePattern gather_pattern(const OrderTask& task, const Csr<std::int64_t>& mine) {
  ESPALIER_CHECK(task.nodes <= std::numeric_limits<std::int32_t>::max(), "{} vertices", task.nodes);
  WholePattern whole;
  Buffer<std::int64_t> sizes(mine.rows);
  for (std::int64_t i = 0; i < mine.rows; ++i) sizes[i] = mine.row_size(i);
  const Buffer<std::int32_t> columns(mine.indices.begin(), mine.indices.end());
  const auto all_sizes = gather(task.world, std::span<const std::int64_t>(sizes));
  whole.indices = gather(task.world, std::span<const std::int32_t>(columns));
  whole.indptr.resize(all_sizes.size() + 1);
  whole.indptr[0] = 0;
  std::inclusive_scan(all_sizes.begin(), all_sizes.end(), whole.indptr.begin() + 1);
  whole.weights = gather_weights(task, {0, task.nodes});
  whole.type_ends = task.type_ends;
  return whole;
}

std::vector<ClusterWeights> gather_weights(const OrderTask& task, RowRange range) {
  const auto mine = task.mine();
  const auto begin = std::clamp(range.begin, mine.begin, mine.end),
             end = std::clamp(range.end, mine.begin, mine.end);
  const auto all = gather(task.world, std::span(task.weights).subspan(begin - mine.begin, end - begin));
  return {all.begin(), all.end()};
}

Buffer<std::uint16_t> scatter_clusters(const OrderTask& task, std::span<const std::uint16_t> all) {
  std::vector<std::int64_t> counts(task.world.size(), 0);
  for (int r = 0; r < task.world.size() && !all.empty(); ++r)
    counts[r] = even_range(task.nodes, task.world.size(), r).size();
  return task.world.all_to_all_v(all, counts, kPatternLabel).data;
}

}  // namespace espalier
