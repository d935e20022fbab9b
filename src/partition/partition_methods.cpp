#include "espalier/partition/partition_methods.hpp"

#include <algorithm>
#include <numeric>

#include "espalier/base/error.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/named.hpp"
#include "espalier/base/row_range.hpp"
#include "espalier/base/text.hpp"
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

// ---- an order by one of them ----

void check_order(const VertexPartitionInfo& order, const GraphFile& file, const std::string& path) {
  constexpr const char* kAgain = "make one of this graph with `espalier partition`";
  if (order.nodes != file.info().nodes)
    input_error("{}: the order is of a graph with {} vertices, and {} has {}; {}", path, order.nodes,
                file.path(), file.info().nodes, kAgain);
  const auto pattern = pattern_digest(file.content());
  if (order.pattern && pattern && *order.pattern != *pattern)
    input_error("{}: the order is of a graph with other edges than {} has; {}", path, file.path(), kAgain);
}

void check_cut(const EdgePartsInfo& cut, const GraphFile& file, const std::string& path) {
  constexpr const char* kAgain = "make them of this graph with `espalier partition --edges`";
  if (cut.edges() != file.info().edges)
    input_error("{}: the parts are of a graph with {} edges, and {} has {}; {}", path, cut.edges(),
                file.path(), file.info().edges, kAgain);
  const auto pattern = pattern_digest(file.content());
  if (cut.pattern && pattern && *cut.pattern != *pattern)
    input_error("{}: the parts are of a graph with other edges than {} has; {}", path, file.path(), kAgain);
}

namespace {

constexpr std::int64_t kUsualClusters = 1024;

// Collective. Of each of my vertices: 1, the entries of its row, whether it is in each part of
// any split.
std::vector<ClusterWeights> read_weights(const GraphFile& file, const VertexPartitionTask& task) {
  const auto mine = task.mine();
  std::vector<ClusterWeights> weights(static_cast<std::size_t>(mine.size()), ClusterWeights{1});
  const auto read = [&](std::int64_t begin, std::int64_t end) {
    const auto rows = task.read_rows(begin, end);
    for (std::int64_t i = 0; i < rows.rows; ++i) weights[begin - mine.begin + i][1] = rows.row_size(i);
  };
  in_row_parts(task.world, task.nodes, read, 1 + task.edges / task.nodes);
  const auto& info = file.info();  // of the target, where there is one
  for (std::size_t place = 0; place < info.splits.size(); ++place)
    for (const auto split : {Split::kTrain, Split::kValid, Split::kTest})
      for (const auto v : file.read_split(split, info.target, place))
        if (v >= mine.begin && v < mine.end) weights[v - mine.begin][2 + static_cast<int>(split)] = 1;
  return weights;
}

// Where the types end that parts are to have evenly; empty: none.
std::vector<std::int64_t> balanced_types(const GraphInfo& info, const VertexPartitionMethod& method,
                                         bool ignore_types) {
  constexpr std::size_t kMostTypes = 16;
  const auto& types = info.schema.types();
  std::vector<std::int64_t> ends;
  if (types.size() == 1 || !method.balances_types || ignore_types) return ends;
  if (types.size() > kMostTypes) {
    log::warning("{} vertex types: METIS balances up to {}, so parts are even in all vertices alone",
                 types.size(), kMostTypes);
    return ends;
  }
  for (const auto& type : types) ends.push_back(type.end);
  return ends;
}

// Collective. The parts that vertices are to follow, and how many of them.
void take_cut(VertexPartitionTask& task, const GraphFile& file, const OrderOptions& options) {
  task.by = EdgeCut{options.by, read_edge_parts_info(task.world, options.by)};
  check_cut(task.by->info, file, options.by);
  const auto parts = task.by->info.parts();
  if (options.clusters > parts)
    usage_error("--parts {}: {} has {} of edges; ask for at most so many", options.clusters, options.by,
                counted(parts, "part"));
  task.clusters = options.clusters > 0 ? options.clusters : parts;
  task.read_row_sizes = [&file](std::int64_t begin, std::int64_t end) {
    return file.read_row_sizes(begin, end);
  };
}

}  // namespace

VertexPartitionTask order_task(const Communicator& world, const GraphFile& file,
                               const OrderOptions& options) {
  const auto& info = file.info();
  VertexPartitionTask task{.world = world,
                           .nodes = info.nodes,
                           .edges = info.edges,
                           .clusters = options.clusters > 0
                                           ? options.clusters
                                           : static_cast<int>(std::min(kUsualClusters, info.nodes)),
                           .seed = options.seed,
                           .fast = options.fast,
                           .weights = {},
                           .read_rows = [&file](std::int64_t begin, std::int64_t end) {
                             return file.read_rows<std::int64_t>(begin, end);
                           }};
  if (options.method->by_cut) take_cut(task, file, options);
  task.weights = read_weights(file, task);
  task.type_ends = balanced_types(info, *options.method, options.ignore_types);
  return task;
}

VertexPartitionInfo describe_order(const GraphFile& file, const VertexPartitionMethod& method,
                                   const VertexPartitionTask& task, std::span<const std::uint16_t> mine) {
  VertexPartitionInfo order{task.nodes, method.name, pattern_digest(file.content()),
                            weights_of_clusters(task, mine)};
  if (method.by_cut) order.weights.resize(task.clusters);  // parts that own nothing stay parts
  if (!task.type_ends.empty()) {
    for (const auto& type : file.info().schema.types()) order.types.push_back(type.name);
    order.type_weights = type_weights_of_clusters(task, mine, order.clusters());
  }
  return order;
}

Order make_order(const Communicator& world, const GraphFile& file, const OrderOptions& options) {
  const auto task = order_task(world, file, options);
  const auto mine = options.method->clusters(task);
  const auto all = world.all_gather_v(std::span<const std::uint16_t>(mine), "order");
  return {describe_order(file, *options.method, task, mine), {all.begin(), all.end()}};
}

}  // namespace espalier
