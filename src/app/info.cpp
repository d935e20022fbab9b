// espalier info: what is in a graph file, and how much memory it takes on a grid; or what is in an
// order (info_pages.hpp).
#include <algorithm>

#include "commands.hpp"
#include "espalier/base/text.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/comm/session.hpp"
#include "espalier/feature/input_tables.hpp"
#include "espalier/graph/graph_facts.hpp"
#include "espalier/plan/memory.hpp"
#include "info_pages.hpp"

namespace espalier {

namespace {

// ---- degrees ----

// Directed or not is what the edges say; the attribute only claims it.
std::string direction_in_words(const GraphInfo& info, bool symmetric) {
  std::string words = symmetric ? "undirected (each both ways)" : "directed";
  if (info.directed && *info.directed == symmetric)
    words += fmt::format(" (its attribute directed says {}, wrongly)", *info.directed ? "true" : "false");
  return words;
}

void show_edges(const Communicator& world, const GraphFile& file) {
  const auto& info = file.info();
  const auto facts = read_edge_facts(world, file, kInfoLabel);
  info_line("edges", fmt::format("{}, {}, {}, {}-bit ids", info.edges,
                                 direction_in_words(info, facts.forward == facts.backward),
                                 info.weighted ? "weighted" : "unweighted", info.wide_indices ? 64 : 32));
  const auto degrees = read_degrees(world, file);
  const auto of = [&](double q) { return quantile(degrees, q, info.nodes); };
  info_line("in-degree",
            fmt::format("min {}, 25 % {}, median {}, 75 % {}, 90 % {}, 99 % {}, max {}, mean {:.3f}", of(0),
                        of(0.25), of(0.5), of(0.75), of(0.9), of(0.99), of(1),
                        static_cast<double>(info.edges) / static_cast<double>(info.nodes)));
  info_line("self loops", std::to_string(facts.self_loops));
  info_line("isolated", fmt::format("{} without any edge", counted(facts.isolated, "vertex")));
}

// ---- vertices ----

void show_vertices(const Communicator& world, const GraphFile& file) {
  const auto& info = file.info();
  info_line("features", features_in_words(world, file, 0));
  if (info.edge_features[0].has()) info_line("edge features", edge_features_in_words(world, file, 0));
  show_times(world, file, Column::kEdgeTime, 0);
  info_line("labels", labels_in_words(world, file, 0));
  if (info.class_names > 0) info_line("class names", class_names_in_words(file, 0));
  show_columns(file);
  if (info.ids != IdKind::kNone) info_line("ids", ids_in_words(world, file, 0));
  show_times(world, file, Column::kTime, 0);
  if (info.splits.empty()) info_line("splits", in_words(SplitInfo()));
  for (const auto& split : info.splits) info_line("splits", in_words(split));
}

// ---- memory ----

void show_memory(const GraphInfo& info, const InfoArguments& arguments) {
  const double topology = topology_bytes(info, info.weighted),
               features = table_bytes(input_tables(info, 0), info.nodes, false);
  const auto rows = static_cast<double>(arguments.ranks / arguments.replication);
  log::info("\nmemory per rank on {}, replication {} ({}, evenly cut):\n", counted(arguments.ranks, "rank"),
            arguments.replication, counted(arguments.ranks / arguments.replication, "block row"));
  log::info("  {:<24} {:>12} {:>12} {:>12}", "grid.topology", "topology", "features", "together");
  const auto show = [&](const char* name, double a) {
    log::info("  {:<24} {:>12} {:>12} {:>12}", name, bytes_in_words(a), bytes_in_words(features / rows),
              bytes_in_words(a + features / rows));
  };
  show("partitioned", topology / rows);
  show("replicated", topology);
}

}  // namespace

void info_command(const Communicator& world, const InfoArguments& arguments) {
  set_memory_advice("use more ranks: each reads its part of the graph");
  if (arguments.ranks % arguments.replication != 0)
    usage_error("--ranks {} --replication {}: the replication must divide the number of ranks",
                arguments.ranks, arguments.replication);
  const Watchdog watchdog(arguments.stall_minutes, "--stall-minutes");
  note_activity("opening the file");
  const std::int64_t order = world.rank() == 0 && looks_like_order(arguments.file);
  if (world.all_reduce(order, Reduction::kMax, kInfoLabel) != 0) return show_order(world, arguments.file);
  // 1. What the header says.
  GraphView view;
  view.apart = true;
  const GraphFile file(world, arguments.file, view);
  const auto& info = file.info();
  info_line("file", arguments.file);
  info_line("name", info.name);
  info_line("source", info.source);
  // 2. What the arrays say.
  if (info.typed) {
    show_typed_graph(world, file);
  } else {
    info_line("vertices", std::to_string(info.nodes));
    note_activity("reading the edges");
    show_edges(world, file);
    show_unreached(world, file);
    note_activity("reading features, labels and splits");
    show_vertices(world, file);
  }
  check_splits(world, file);
  show_links(world, file);
  const auto digest = file.content().file;
  info_line("digest",
            (digest ? hex(*digest) : "unknown") +
                (file.has_digest() ? ", as it stands in the file"
                                   : fmt::format("; the file has none, `espalier digest {} --write` adds it",
                                                 arguments.file)));
  // 3. What a job will need.
  show_memory(info, arguments);
}

}  // namespace espalier
