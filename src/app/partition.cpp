// espalier partition: an order of a graph, by which any number of ranks will own its vertices; or
// with --edges a vertex cut, in parts that any grid of fewer ranks takes runs of.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "commands.hpp"
#include "espalier/base/clock.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/named.hpp"
#include "espalier/base/output_file.hpp"
#include "espalier/base/signals.hpp"
#include "espalier/base/text.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/comm/session.hpp"
#include "espalier/partition/edge_parts.hpp"
#include "espalier/partition/partition_methods.hpp"
#include "info_pages.hpp"

namespace espalier {

// ---- an order in words, for `espalier info` as well ----

namespace {

std::string names_of_balances() {
  std::string names;
  for (const auto* name : kBalanceNames) names += fmt::format("{:<10}", name);
  return names;
}

std::string in_words(std::span<const double> balances) {
  std::string words;
  for (const auto balance : balances.first(kBalances)) words += fmt::format("{:<10.3f}", balance);
  return words;
}

// A line for each type; balances: [parts], as balances_of.
void show_types(const std::vector<std::string>& types, const std::vector<int>& parts,
                const std::vector<std::vector<double>>& balances) {
  if (types.empty() || parts.empty()) return;
  std::string head;
  for (const int of : parts) head += fmt::format("{:>11} parts", of);
  log::info("\nlargest part over the mean, vertices and edges of each type:\n\n{:<20}{}", "type", head);
  for (std::size_t type = 0; type < types.size(); ++type) {
    std::string line;
    const auto vertices = kBalances + 2 * type;
    for (const auto& of : balances) line += fmt::format("{:>11.3f}{:>6.3f}", of[vertices], of[vertices + 1]);
    log::info("{:<20}{}", excerpt(types[type]), line);
  }
}

}  // namespace

void show_quality(const std::vector<PartsQuality>& qualities, const std::vector<std::string>& types) {
  if (qualities.empty()) return;
  log::info("\n{:>6} {:>8} {:>12}   largest part over the mean, of", "parts", "cut", "replication");
  log::info("{:>6} {:>8} {:>12}   {}", "", "", "", names_of_balances());
  for (const auto& quality : qualities)
    log::info("{:>6} {:>8.4f} {:>12.3f}   {}", quality.parts, quality.cut, quality.replication,
              in_words(quality.balances));
  std::vector<int> parts;
  std::vector<std::vector<double>> balances;
  for (const auto& quality : qualities) {
    parts.push_back(quality.parts);
    balances.push_back(quality.balances);
  }
  show_types(types, parts, balances);
}

// The attribute format stands near the beginning. HDF5 is not asked: what it makes of a damaged
// file is for those who read the file.
bool looks_like_order(const std::string& path) {
  if (!other_than_file(path).empty()) return false;
  std::string beginning(std::size_t{1} << 16, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(beginning.data(), std::ssize(beginning));
  beginning.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return beginning.find("espalier-order") != beginning.npos;
}

void show_order(const Communicator& world, const std::string& path) {
  const auto order = read_order(world, path);
  const auto& info = order.info;
  info_line("file", path);
  info_line("order", fmt::format("{} by {}", counted(info.clusters(), "cluster"), info.method));
  info_line("vertices", std::to_string(info.nodes));
  info_line("graph", info.pattern ? fmt::format("digest of its edges {}", hex(*info.pattern)) : "unknown");
  ClusterWeights total{};
  for (const auto& weights : info.weights) total += weights;
  info_line("edges", std::to_string(total[1]));
  info_line("splits", fmt::format("train {}, valid {}, test {}", total[2], total[3], total[4]));
  log::info("\nlargest part over the mean, cut into so many parts:\n\n{:>6}   {}", "parts",
            names_of_balances());
  std::vector<std::vector<double>> balances;
  for (const int parts : shown_parts(info.clusters())) {
    balances.push_back(balances_of(info, cut_order(info, parts)));
    log::info("{:>6}   {}", parts, in_words(balances.back()));
  }
  show_types(info.types, shown_parts(info.clusters()), balances);
}

// ---- an order ----

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

// ---- a vertex cut ----

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
