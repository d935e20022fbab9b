#include "partition_pattern.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "espalier/base/error.hpp"
#include "espalier/base/log.hpp"

namespace espalier {

namespace {

constexpr const char* kPatternLabel = "order";

constexpr std::int64_t kEntriesPerRound = std::int64_t{1} << 22;

struct MirroredEntry {
  std::int64_t row, column;
};

void drop_loops(Csr<std::int64_t>& rows, std::int64_t first) {
  std::int64_t kept = 0, entry = 0;
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    for (; entry < rows.row_end(row); ++entry)
      if (rows.indices[entry] != first + row) rows.indices[kept++] = rows.indices[entry];
    rows.indptr[row + 1] = kept;
  }
  rows.indices.resize(kept);
}

void add(EdgeList<std::int64_t>& edges, std::int64_t row, std::int64_t column) {
  edges.targets.push_back(row);
  edges.sources.push_back(column);
}

// My entries and those that others' become when mirrored.
EdgeList<std::int64_t> both_ways(const Communicator& comm, const Csr<std::int64_t>& rows,
                                 std::int64_t first) {
  EdgeList<std::int64_t> edges;
  std::int64_t row = 0;
  exchange_in_rounds<MirroredEntry>(
      comm, rows.columns, rows.entries(), kEntriesPerRound, 1, "partition",
      [&](std::int64_t e, auto& sent) {
        while (rows.row_end(row) <= e) ++row;
        sent.push_back({rows.indices[e], first + row});
      },
      [&](const auto& sent, const auto&, const auto& got) {
        for (const auto& entry : got.data) add(edges, entry.row, entry.column);
        for (const auto& entry : sent) add(edges, entry.column, entry.row);
      });
  return edges;
}

}  // namespace

Csr<std::int64_t> symmetric_pattern(const Communicator& comm, Csr<std::int64_t> rows) {
  rows.values = {};
  const auto n = rows.columns;
  const auto mine = even_range(n, comm.size(), comm.rank());
  if (comm.all_reduce(asymmetry_of(rows, mine.begin), Reduction::kSum, "partition") == 0) {
    drop_loops(rows, mine.begin);
    return rows;
  }
  auto edges = both_ways(comm, rows, mine.begin);
  rows = {};
  EdgeOptions options;
  options.drop_self_loops = true;
  EdgeCounts counts;
  return build_rows(edges, mine, n, options, counts);
}

Csr<std::int64_t> symmetric_rows(const VertexPartitionTask& task) {
  const auto mine = task.mine();
  auto rows = task.read_rows(mine.begin, mine.end);
  rows.values = {};
  if (task.world.all_reduce(asymmetry_of(rows, mine.begin), Reduction::kSum, kPatternLabel) != 0)
    log::info("the graph is directed: an edge in either direction counts as one in both");
  return symmetric_pattern(task.world, std::move(rows));
}

WholePattern gather_pattern(const VertexPartitionTask& task, const Csr<std::int64_t>& mine) {
  ESPALIER_CHECK(task.nodes <= std::numeric_limits<std::int32_t>::max(), "{} vertices", task.nodes);
  WholePattern whole;
  Buffer<std::int64_t> sizes(mine.rows);
  for (std::int64_t i = 0; i < mine.rows; ++i) sizes[i] = mine.row_size(i);
  const Buffer<std::int32_t> columns(mine.indices.begin(), mine.indices.end());
  const auto all_sizes = gather<std::int64_t>(task.world, sizes, kPatternLabel);
  whole.indices = gather<std::int32_t>(task.world, columns, kPatternLabel);
  whole.indptr.resize(all_sizes.size() + 1);
  whole.indptr[0] = 0;
  std::inclusive_scan(all_sizes.begin(), all_sizes.end(), whole.indptr.begin() + 1);
  whole.weights = gather_weights(task, {0, task.nodes});
  whole.type_ends = task.type_ends;
  return whole;
}

std::vector<ClusterWeights> gather_weights(const VertexPartitionTask& task, RowRange range) {
  const auto mine = task.mine();
  const auto begin = std::clamp(range.begin, mine.begin, mine.end),
             end = std::clamp(range.end, mine.begin, mine.end);
  const auto all =
      gather(task.world, std::span(task.weights).subspan(begin - mine.begin, end - begin), kPatternLabel);
  return {all.begin(), all.end()};
}

Buffer<std::uint16_t> scatter_clusters(const VertexPartitionTask& task, std::span<const std::uint16_t> all) {
  std::vector<std::int64_t> counts(task.world.size(), 0);
  for (int r = 0; r < task.world.size() && !all.empty(); ++r)
    counts[r] = even_range(task.nodes, task.world.size(), r).size();
  return task.world.all_to_all_v(all, counts, kPatternLabel).data;
}

}  // namespace espalier
