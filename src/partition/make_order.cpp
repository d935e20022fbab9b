#include "espalier/partition/partition_methods.hpp"

#include <algorithm>

#include "espalier/base/log.hpp"
#include "espalier/base/row_range.hpp"
#include "espalier/base/text.hpp"

namespace espalier {

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
