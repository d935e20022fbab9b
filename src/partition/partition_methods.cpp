#include "espalier/partition/partition_methods.hpp"

#include <algorithm>
#include <numeric>

#include "espalier/base/error.hpp"
#include "espalier/base/named.hpp"
#include "espalier/base/row_range.hpp"
#include "espalier/partition/edge_parts.hpp"

namespace espalier {

namespace {

// Clusters of consecutive ids, as many vertices in each: what the program has without an order.
Buffer<std::uint16_t> partition_by_block(const VertexPartitionTask& task) {
  Buffer<std::uint16_t> clusters;
  const auto mine = task.mine();
  for (auto v = mine.begin; v < mine.end; ++v)
    clusters.push_back(static_cast<std::uint16_t>(even_owner(task.nodes, task.clusters, v)));
  return clusters;
}

}  // namespace

std::span<const VertexPartitionMethod> partition_methods() {
  static constexpr VertexPartitionMethod kMethods[] = {
      {.name = "metis",
       .about = "METIS's multi-constraint bisections, top down: the smallest cuts; graph on one rank",
       .clusters = partition_by_metis,
       .check = check_metis,
       .uses_seed = true,
       .uses_fast = true,
       .balances_types = true},
      {.name = "multilevel",
       .about = "our own coarsening, spread over the ranks; METIS cuts the coarsest graph alone",
       .clusters = partition_by_multilevel,
       .uses_seed = true},
      {.name = "streaming",
       .about = "greedily, in one pass over the rows, of which one rank has a buffer; 2 bytes per vertex",
       .clusters = partition_by_streaming,
       .uses_fast = true},
      {.name = "block", .about = "by id, as without an order", .clusters = partition_by_block},
      {.name = "cut",
       .about = "beside a vertex cut (--by): each vertex with the part that has most of its row",
       .clusters = partition_by_cut,
       .by_cut = true},
  };
  return kMethods;
}

const VertexPartitionMethod& partition_method(const std::string& name) {
  for (const char* removed : {"bfs", "degree", "random"})
    if (name == removed)
      usage_error(
          "--method {} was removed; --method block needs no edges either, and bench/partition/orders.py "
          "makes "
          "the order that this was",
          name);
  return entry_named(partition_methods(), name, "--method");
}

std::string default_order_method(std::int64_t nodes, std::int64_t entries) {
  if (has_metis() && fits_metis(nodes, entries)) return "metis";
  return has_metis() ? "multilevel" : "streaming";
}

std::vector<ClusterWeights> weights_of_clusters(const VertexPartitionTask& task,
                                                std::span<const std::uint16_t> mine) {
  std::vector<ClusterWeights> sums(static_cast<std::size_t>(task.clusters), ClusterWeights{});
  for (std::size_t v = 0; v < mine.size(); ++v) sums[mine[v]] += task.weights[v];
  task.world.all_reduce(std::span(sums[0].data(), sums.size() * kBalanceNames.size()), Reduction::kSum,
                        "order");
  while (sums.size() > 1 && sums.back()[0] == 0) sums.pop_back();
  return sums;
}

std::vector<std::int64_t> type_weights_of_clusters(const VertexPartitionTask& task,
                                                   std::span<const std::uint16_t> mine, int clusters) {
  const auto& ends = task.type_ends;
  const auto kinds = 2 * ends.size();
  std::vector<std::int64_t> sums(static_cast<std::size_t>(clusters) * kinds, 0);
  if (kinds == 0) return sums;
  for (std::size_t v = 0; v < mine.size(); ++v) {
    const auto id = task.mine().begin + static_cast<std::int64_t>(v);
    const auto at = mine[v] * kinds + 2 * (std::ranges::upper_bound(ends, id) - ends.begin());
    sums[at] += task.weights[v][0];
    sums[at + 1] += task.weights[v][1];
  }
  task.world.all_reduce(std::span(sums), Reduction::kSum, "order");
  return sums;
}

// Owners beside a vertex cut: a vertex is with the block row that holds most entries of its row, of
// these the first; one without entries with v mod the number of them.

Buffer<std::uint16_t> partition_by_cut(const VertexPartitionTask& task) {
  const auto mine = task.mine();
  const auto sizes = task.read_row_sizes(mine.begin, mine.end);
  const auto counts =
      task.world.all_gather(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}), "order");
  auto first = std::accumulate(counts.begin(), counts.begin() + task.world.rank(), std::int64_t{0});
  EdgePartsReader reader(task.world, task.by->path, task.by->info);
  const auto block_rows = fold_parts(task.by->info.entries, task.clusters);
  std::vector<std::int64_t> entries(static_cast<std::size_t>(task.clusters), 0);  // of a row
  Buffer<std::uint16_t> owners;
  const auto read = [&](std::int64_t begin, std::int64_t end) {
    const auto some = std::span(sizes).subspan(begin - mine.begin, end - begin);
    const auto last = std::accumulate(some.begin(), some.end(), first);
    const auto parts = reader.read(first, last);
    first = last;
    auto from = parts.begin();
    for (auto v = begin; v < end; ++v) {
      const std::span row(from, some[v - begin]);
      auto most = static_cast<int>(v % task.clusters);
      for (const auto part : row) {
        const int at = block_rows[part];
        if (++entries[at] > entries[most] || (entries[at] == entries[most] && at < most)) most = at;
      }
      for (const auto part : row) entries[block_rows[part]] = 0;
      owners.push_back(static_cast<std::uint16_t>(most));
      from += std::ssize(row);
    }
  };
  in_row_parts(task.world, task.nodes, read, 1 + task.by->info.edges() / task.nodes);
  reader.check();
  return owners;
}

}  // namespace espalier
