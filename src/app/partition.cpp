// espalier partition: an order of a graph, by which any number of ranks will own its vertices.
#include <algorithm>
#include <filesystem>

#include "commands.hpp"
#include "espalier/base/clock.hpp"
#include "espalier/base/counted.hpp"
#include "espalier/base/escape.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/progress.hpp"
#include "espalier/base/signals.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/comm/agree.hpp"
#include "espalier/comm/session.hpp"
#include "espalier/graph/degrees.hpp"
#include "espalier/job/job.hpp"
#include "espalier/partition/partition_quality.hpp"
#include "info_pages.hpp"

namespace espalier {

namespace {

constexpr std::int64_t kUsualClusters = 1024;

std::string output_of(const PartitionArguments& arguments) {
  if (!arguments.output.empty()) return arguments.output;
  const std::string_view ending = ".h5";
  auto stem = arguments.file;
  if (stem.ends_with(ending)) stem.resize(stem.size() - ending.size());
  return stem + ".order.h5";
}

int clusters_of(const PartitionArguments& arguments, std::int64_t nodes) {
  if (arguments.clusters > nodes)
    usage_error("--clusters {}: the graph has {} vertices; ask for at most so many clusters",
                arguments.clusters, nodes);
  return static_cast<int>(arguments.clusters > 0 ? arguments.clusters : std::min(kUsualClusters, nodes));
}

const VertexPartitionMethod& method_of(const PartitionArguments& arguments, const GraphInfo& info) {
  const bool symmetric = info.directed && !*info.directed;
  const auto& method = partition_method(
      arguments.method.empty() ? default_order_method(info.nodes, symmetric ? info.edges : 2 * info.edges)
                               : arguments.method);
  if (method.check != nullptr) method.check(info.nodes, info.edges);
  if (arguments.seed != 0 && !method.uses_seed)
    usage_error("--seed {}: --method {} leaves nothing to chance; leave it out", arguments.seed, method.name);
  if (arguments.fast && !method.uses_fast)
    usage_error("--fast: --method {} has no attempts to save; leave it out", method.name);
  if (arguments.ignore_types && info.schema.types().size() == 1)
    usage_error("--ignore-types: {} has no vertex types; leave it out", arguments.file);
  if (arguments.ignore_types && !method.balances_types)
    usage_error("--ignore-types: --method {} balances no types; leave it out", method.name);
  if (method.by_cut && arguments.by.empty())
    usage_error(
        "--method cut: parts of which edges? Give --by CUT.h5, of `espalier partition GRAPH --edges`");
  if (!method.by_cut && !arguments.by.empty())
    usage_error("--by: is of --method cut, and this is {}; leave it out", method.name);
  if (!method.by_cut && arguments.parts > 0)
    usage_error("--parts {}: is of edges (--edges); an order is cut into as many parts as a grid has",
                arguments.parts);
  if (method.by_cut && arguments.clusters > 0)
    usage_error("--clusters {}: with --by there is one for each part; --parts asks for fewer",
                arguments.clusters);
  return method;
}

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
                                         const PartitionArguments& arguments) {
  constexpr std::size_t kMostTypes = 16;
  const auto& types = info.schema.types();
  std::vector<std::int64_t> ends;
  if (types.size() == 1 || !method.balances_types || arguments.ignore_types) return ends;
  if (types.size() > kMostTypes) {
    log::warning("{} vertex types: METIS balances up to {}, so parts are even in all vertices alone",
                 types.size(), kMostTypes);
    return ends;
  }
  for (const auto& type : types) ends.push_back(type.end);
  return ends;
}

// Collective. The parts that vertices are to follow, and how many of them.
void take_cut(VertexPartitionTask& task, const GraphFile& file, const PartitionArguments& arguments) {
  task.by = EdgeCut{arguments.by, read_edge_parts_info(task.world, arguments.by)};
  check_cut(task.by->info, file, arguments.by);
  const auto parts = task.by->info.parts();
  if (arguments.parts > parts)
    usage_error("--parts {}: {} has {} of edges; ask for at most so many", arguments.parts, arguments.by,
                counted(parts, "part"));
  task.clusters = arguments.parts > 0 ? static_cast<int>(arguments.parts) : parts;
  task.read_row_sizes = [&file](std::int64_t begin, std::int64_t end) {
    return file.read_row_sizes(begin, end);
  };
}

VertexPartitionTask task_of(const Communicator& world, const GraphFile& file,
                            const VertexPartitionMethod& method, const PartitionArguments& arguments) {
  const auto& info = file.info();
  VertexPartitionTask task{.world = world,
                           .nodes = info.nodes,
                           .edges = info.edges,
                           .clusters = clusters_of(arguments, info.nodes),
                           .seed = static_cast<std::uint64_t>(arguments.seed),
                           .fast = arguments.fast,
                           .weights = {},
                           .read_rows = [&file](std::int64_t begin, std::int64_t end) {
                             return file.read_rows<std::int64_t>(begin, end);
                           }};
  if (method.by_cut) take_cut(task, file, arguments);
  task.weights = read_weights(file, task);
  task.type_ends = balanced_types(info, method, arguments);
  return task;
}

// Collective. What is to be said of the order with these clusters of my vertices.
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

}  // namespace

Order make_order(const Communicator& world, const GraphFile& file, const PartitionArguments& arguments) {
  const auto& method = method_of(arguments, file.info());
  const auto task = task_of(world, file, method, arguments);
  const auto mine = method.clusters(task);
  const auto all = world.all_gather_v(std::span<const std::uint16_t>(mine), "order");
  return {describe_order(file, method, task, mine), {all.begin(), all.end()}};
}

void partition_command(const Communicator& world, const PartitionArguments& arguments) {
  if (arguments.edges) return partition_edges(world, arguments);
  const double start = now();
  const Watchdog watchdog(arguments.stall_minutes, "--stall-minutes");
  set_memory_advice("use more ranks on more nodes, or --method streaming");
  note_activity("opening the graph file");
  note_consequence("no order was written");
  // 1. What is asked for? Before anything large is read.
  const OutputFile output(output_of(arguments), arguments.overwrite);
  agree(world, [&] {
    if (world.rank() == 0) check_output(output);
  });
  const GraphFile file(world, arguments.file);
  const auto& method = method_of(arguments, file.info());
  clusters_of(arguments, file.info().nodes);
  // 2. The order.
  note_activity("reading the graph");
  const auto task = task_of(world, file, method, arguments);
  log::info("graph      {}: {}, {}", excerpt(arguments.file), counted(task.nodes, "vertex"),
            counted(task.edges, "edge"));
  note_activity("making clusters");
  const auto mine = method.clusters(task);
  const auto order = describe_order(file, method, task, mine);
  note_activity("writing the order");
  write_order(world, output, order, mine);
  std::error_code unknown;  // to ranks that do not see the file yet; rank 0 speaks
  log::info("wrote      {}: {} by {}, {} bytes, in {:.1f} s", excerpt(output.path),
            counted(order.clusters(), "cluster"), method.name,
            std::filesystem::file_size(output.path, unknown), now() - start);
  // 3. How good it is.
  note_activity("judging the order");
  note_consequence("the order is written, but not judged");
  show_quality(quality_of(task, mine, order, shown_parts(order.clusters())), order.types);
}

}  // namespace espalier
