// espalier import: from files that others made to a graph file.
#include <charconv>

#include "commands.hpp"
#include "espalier/base/clock.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/signals.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/base/whereabouts.hpp"
#include "espalier/comm/session.hpp"
#include "espalier/graph/graph_file.hpp"
#include "espalier/graph/ogb_import.hpp"

namespace espalier {

namespace {

std::optional<std::int64_t> weight_column(const std::string& text) {
  if (text.empty()) return std::nullopt;
  std::int64_t column = -1;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), column);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size() || column < 0)
    usage_error("--edge-weight {}: give the number of a column of edge-feat.csv.gz, counted from 0", text);
  return column;
}

Duplicates duplicates_by(const std::string& name) {
  if (name == "sum") return Duplicates::kSum;
  if (name == "max") return Duplicates::kMax;
  if (name == "first") return Duplicates::kFirst;
  if (name == "refuse") return Duplicates::kRefuse;
  usage_error("--duplicates {}: give sum, max, first or refuse", name);
}

}  // namespace

void import_command(const Communicator& world, const ImportArguments& arguments) {
  if (arguments.format != "ogb") usage_error("--format {}: the only format is ogb", arguments.format);
  const double start = now();
  // Rank 0 reads alone; that others wait for it is no stall.
  const Watchdog watchdog(world.rank() == 0 ? arguments.stall_minutes : 0, "--stall-minutes");

  set_memory_advice(
      "import reads the edges, then the features, on one rank, so more ranks are no help: use a node with "
      "more "
      "memory, and --half where the features take it");

  // 1. Read the folder, write the graph file.
  const OgbOptions options{arguments.folder,
                           arguments.split,
                           weight_column(arguments.edge_weight),
                           arguments.symmetrize,
                           arguments.drop_self_loops,
                           arguments.half,
                           duplicates_by(arguments.duplicates),
                           !arguments.no_inverse};
  note_activity("importing");
  note_consequence("no graph file was written");
  import_ogb(world, options, {arguments.output, arguments.overwrite});

  // 2. Open what was written: it must pass the checks of every reader.
  note_activity("checking the graph file");
  note_consequence("the graph file is written, but not checked");
  const GraphFile file(world, arguments.output);
  check_splits(world, file);
  const auto& info = file.info();
  log::info("wrote      {}: {} vertices, {} edges, {} features, {} {}, in {:.1f} s", arguments.output,
            info.nodes, info.edges, info.features, info.classes, info.multi_label ? "labels" : "classes",
            now() - start);
}

}  // namespace espalier
