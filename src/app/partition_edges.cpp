// espalier partition --edges: a vertex cut, in parts that any grid of fewer ranks takes runs of.
#include <filesystem>

#include "commands.hpp"
#include "espalier/base/clock.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/named.hpp"
#include "espalier/base/signals.hpp"
#include "espalier/base/text.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/comm/session.hpp"
#include "espalier/partition/edge_parts.hpp"

namespace espalier {

namespace {

constexpr std::int64_t kUsualParts = 64;

std::string cut_output_of(const PartitionArguments& arguments) {
  if (!arguments.output.empty()) return arguments.output;
  return std::filesystem::path(arguments.file).replace_extension(".cut.h5").string();
}

const EdgeCutMethod& cut_method_of(const PartitionArguments& arguments) {
  const auto methods = edge_cut_methods();
  const auto& method =
      arguments.method.empty() ? methods.front() : entry_named(methods, arguments.method, "--edges --method");
  for (const auto& [given, name] : {std::pair{arguments.clusters > 0, "--clusters"},
                                    {arguments.fast, "--fast"},
                                    {!arguments.by.empty(), "--by"},
                                    {arguments.ignore_types, "--ignore-types"}})
    if (given) usage_error("{}: is of orders of vertices; leave it or --edges out", name);
  if (arguments.seed != 0 && !method.uses_seed)
    usage_error("--seed {}: --method {} leaves nothing to chance; leave it out", arguments.seed, method.name);
  return method;
}

}  // namespace

void partition_edges(const Communicator& world, const PartitionArguments& arguments) {
  const double start = now();
  const Watchdog watchdog(arguments.stall_minutes, "--stall-minutes");
  set_memory_advice("use more ranks on more nodes");
  note_activity("opening the graph file");
  note_consequence("no parts were written");
  const auto& method = cut_method_of(arguments);
  const OutputFile output(cut_output_of(arguments), arguments.overwrite);
  agree(world, [&] {
    if (world.rank() == 0) check_output(output);
  });
  GraphView view;
  view.apart = true;
  const GraphFile file(world, arguments.file, view);
  const auto& info = file.info();
  const int parts = static_cast<int>(arguments.parts > 0 ? arguments.parts : kUsualParts);
  log::info("graph      {}: {}, {}", excerpt(arguments.file), counted(info.nodes, "vertex"),
            counted(info.edges, "edge"));
  note_activity("reading the graph");
  const auto rows = undirected_rows(world, file);
  note_activity("cutting");
  const EdgeCutTask task{world, info.nodes, rows, parts, static_cast<std::uint64_t>(arguments.seed)};
  auto part = method.parts(task);
  number_parts(task, part);
  note_activity("writing the parts");
  write_edge_parts(task, part, file, method.name, output);
  std::error_code unknown;  // to ranks that do not see the file yet; rank 0 speaks
  log::info("wrote      {}: {} by {}, {} bytes, in {:.1f} s", excerpt(output.path), counted(parts, "part"),
            method.name, std::filesystem::file_size(output.path, unknown), now() - start);
  const auto quality = quality_of(task, part);
  log::info("copies     {:.3f} of a vertex (RF); {:.1f} % of the vertices are in one part alone",
            quality.replication, 100 * quality.interior);
  log::info("balance    largest part over smallest: {:.3f} in edges (EB), {:.3f} in vertices (VB)",
            quality.edge_balance, quality.vertex_balance);
}

}  // namespace espalier
