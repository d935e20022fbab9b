// espalier partition: an order of a graph, by which any number of ranks will own its vertices.
#include <filesystem>

#include "commands.hpp"
#include "espalier/base/clock.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/signals.hpp"
#include "espalier/base/text.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/comm/session.hpp"
#include "espalier/partition/partition_methods.hpp"
#include "info_pages.hpp"

namespace espalier {

namespace {

std::string output_of(const PartitionArguments& arguments) {
  if (!arguments.output.empty()) return arguments.output;
  const std::string_view ending = ".h5";
  auto stem = arguments.file;
  if (stem.ends_with(ending)) stem.resize(stem.size() - ending.size());
  return stem + ".order.h5";
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
  if (arguments.clusters > info.nodes)
    usage_error("--clusters {}: the graph has {} vertices; ask for at most so many clusters",
                arguments.clusters, info.nodes);
  return method;
}

OrderOptions options_of(const PartitionArguments& arguments, const VertexPartitionMethod& method) {
  return {.method = &method,
          .clusters = static_cast<int>(method.by_cut ? arguments.parts : arguments.clusters),
          .seed = static_cast<std::uint64_t>(arguments.seed),
          .fast = arguments.fast,
          .ignore_types = arguments.ignore_types,
          .by = arguments.by};
}

}  // namespace

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
  // 2. The order.
  note_activity("reading the graph");
  const auto task = order_task(world, file, options_of(arguments, method));
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
