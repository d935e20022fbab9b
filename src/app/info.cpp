// espalier info: what is in a graph file, and how much memory it takes on a grid; or what is in an
// order (info_pages.hpp).
//
// Degree quantiles are exact: each rank keeps its degrees sorted, and one bisection over the degree
// axis serves all quantiles together.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "commands.hpp"
#include "espalier/base/counted.hpp"
#include "espalier/base/progress.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/comm/session.hpp"
#include "espalier/feature/input_tables.hpp"
#include "espalier/graph/degrees.hpp"
#include "espalier/plan/memory.hpp"
#include "info_pages.hpp"
#include "vertex_marks.hpp"

namespace espalier {

namespace {

// ---- degrees ----

struct Degrees {
  std::vector<std::int64_t> in;  // of my rows, sorted
  std::int64_t self_loops = 0;
  std::int64_t isolated = 0;  // vertices without an edge in either direction
  bool symmetric = true;      // is every edge there in both directions?
};

Degrees degrees_of(const Communicator& world, const GraphFile& file) {
  const auto& info = file.info();
  VertexMarks has_edge(info.nodes, world.size());
  Degrees degrees;
  // Sums over all edges are equal when reversing changes nothing.
  std::uint64_t forward = 0, backward = 0;
  const auto read = [&](std::int64_t begin, std::int64_t end) {
    const auto a = file.read_rows<std::int64_t>(begin, end);
    for (std::int64_t v = 0; v < a.rows; ++v) {
      const auto row = begin + v;
      degrees.in.push_back(a.row_size(v));
      has_edge.mark_row(row, a.row_size(v));
      for (const auto u : a.row_indices(v)) {
        has_edge.mark(u);
        degrees.self_loops += u == row;
        forward += edge_hash(row, u);
        backward += edge_hash(u, row);
      }
    }
  };
  in_row_parts(world, info.nodes, read, 1 + info.edges / info.nodes);
  degrees.symmetric = world.all_reduce(forward, Reduction::kSum, kInfoLabel) ==
                      world.all_reduce(backward, Reduction::kSum, kInfoLabel);
  std::sort(degrees.in.begin(), degrees.in.end());
  degrees.self_loops = world.all_reduce(degrees.self_loops, Reduction::kSum, kInfoLabel);
  degrees.isolated = has_edge.count_unmarked(world, kInfoLabel);
  return degrees;
}

constexpr std::array<double, 7> kQuantiles = {0, 0.25, 0.5, 0.75, 0.9, 0.99, 1};

// The smallest degree that at least a fraction q of the n vertices does not exceed, for each q:
// bisection on [low, high].
std::array<std::int64_t, 7> find_quantiles(const Communicator& world, const std::vector<std::int64_t>& sorted,
                                           std::int64_t n) {
  std::array<std::int64_t, 7> low{}, high{}, covered{};
  high.fill(world.all_reduce(sorted.empty() ? std::int64_t{0} : sorted.back(), Reduction::kMax, kInfoLabel));
  while (low != high) {
    for (std::size_t q = 0; q < low.size(); ++q)
      covered[q] = std::upper_bound(sorted.begin(), sorted.end(), (low[q] + high[q]) / 2) - sorted.begin();
    world.all_reduce(std::span<std::int64_t>(covered), Reduction::kSum, kInfoLabel);
    for (std::size_t q = 0; q < low.size(); ++q) {
      const auto middle = (low[q] + high[q]) / 2;
      const auto wanted =
          std::max<std::int64_t>(1, std::llround(std::ceil(kQuantiles[q] * static_cast<double>(n))));
      if (covered[q] >= wanted)
        high[q] = middle;
      else
        low[q] = std::min(middle + 1, high[q]);
    }
  }
  return low;
}

// Directed or not is what the edges say; the attribute only claims it.
std::string direction_in_words(const GraphInfo& info, bool symmetric) {
  std::string words = symmetric ? "undirected (each both ways)" : "directed";
  if (info.directed && *info.directed == symmetric)
    words += fmt::format(" (its attribute directed says {}, wrongly)", *info.directed ? "true" : "false");
  return words;
}

void show_edges(const Communicator& world, const GraphFile& file) {
  const auto& info = file.info();
  const auto degrees = degrees_of(world, file);
  info_line("edges",
            fmt::format("{}, {}, {}, {}-bit ids", info.edges, direction_in_words(info, degrees.symmetric),
                        info.weighted ? "weighted" : "unweighted", info.wide_indices ? 64 : 32));
  const auto q = find_quantiles(world, degrees.in, info.nodes);
  info_line("in-degree",
            fmt::format("min {}, 25 % {}, median {}, 75 % {}, 90 % {}, 99 % {}, max {}, mean {:.3f}", q[0],
                        q[1], q[2], q[3], q[4], q[5], q[6],
                        static_cast<double>(info.edges) / static_cast<double>(info.nodes)));
  info_line("self loops", std::to_string(degrees.self_loops));
  info_line("isolated", fmt::format("{} without any edge", counted(degrees.isolated, "vertex")));
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
