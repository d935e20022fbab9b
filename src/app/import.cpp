// espalier import: from files that others made to a graph file.
#include <charconv>

#include "commands.hpp"
#include "espalier/base/clock.hpp"
#include "espalier/base/counted.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/progress.hpp"
#include "espalier/base/signals.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/comm/session.hpp"
#include "espalier/graph/graph_file.hpp"
#include "espalier/graph/mag240m_import.hpp"
#include "espalier/graph/ogb_import.hpp"
#include "espalier/graph/triple_import.hpp"

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

void import_folder(const Communicator& world, const ImportArguments& a) {
  const OutputFile output{a.output, a.overwrite};
  const auto duplicates = duplicates_by(a.duplicates);
  if (a.format == "triples")
    import_triples(world, {{a.train, a.valid, a.test}, !a.no_inverse, a.ignore_relations}, output);
  else if (a.format == "mag240m")
    import_mag240m(world, {a.folder, "", !a.no_inverse, a.drop_self_loops, a.half, duplicates}, output);
  else
    import_ogb(world,
               {a.folder, a.split, weight_column(a.edge_weight), a.symmetrize, a.drop_self_loops, a.half,
                duplicates, !a.no_inverse, !a.no_edge_features},
               output);
}

// "10 vertices of 2 types, 30 edges in 4 relations"
std::string counts_in_words(const GraphInfo& info) {
  if (!info.typed) return fmt::format("{}, {}", counted(info.nodes, "vertex"), counted(info.edges, "edge"));
  return fmt::format("{} of {}, {} in {}", counted(info.nodes, "vertex"),
                     counted(std::ssize(info.schema.types()), "type"), counted(info.edges, "edge"),
                     counted(std::ssize(info.schema.relations()), "relation"));
}

}  // namespace

void import_command(const Communicator& world, const ImportArguments& arguments) {
  const double start = now();
  // Rank 0 reads alone; that others wait for it is no stall.
  const Watchdog watchdog(world.rank() == 0 ? arguments.stall_minutes : 0, "--stall-minutes");

  set_memory_advice(
      arguments.format == "triples"
          ? "import reads the triples on one rank, so more ranks are no help: use a node with more memory"
          : "import reads the edges, then the features, on one rank, so more ranks are no help: use a node "
            "with more memory, --half where the features take it, and --no-edge-features where those of "
            "edges are not needed");

  // 1. Read the folder, write the graph file.
  note_activity("importing");
  note_consequence("no graph file was written");
  import_folder(world, arguments);

  // 2. Open what was written: it must pass the checks of every reader.
  note_activity("checking the graph file");
  note_consequence("the graph file is written, but not checked");
  const GraphFile file(world, arguments.output);
  check_splits(world, file);
  check_links(world, file);
  const auto& info = file.info();
  log::info("wrote      {}: {}, {}, {}, in {:.1f} s", arguments.output, counts_in_words(info),
            counted(info.features, "feature"), counted(info.classes, info.multi_label ? "label" : "class"),
            now() - start);
}

}  // namespace espalier
