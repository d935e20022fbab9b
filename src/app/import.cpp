// espalier import: from files that others made to a graph file.
#include "commands.hpp"
#include "espalier/base/clock.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/signals.hpp"
#include "espalier/base/text.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/comm/session.hpp"
#include "espalier/graph/graph_file.hpp"
#include "import_formats.hpp"

namespace espalier {

namespace {

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

  const auto& format = import_format(arguments.format);
  set_memory_advice(format.memory_advice);

  if (arguments.describe) {
    if (*format.no_description != '\0') usage_error("--describe: {}", format.no_description);
    std::string text;
    {
      const log::Quietly quietly;  // what is printed is the description alone
      text = describe_import(world, format.ask(arguments));
    }
    log::info("{}", text);
    return;
  }

  // 1. Read the files, write the graph file.
  note_activity("importing");
  note_consequence("no graph file was written");
  import_graph(world, format.ask(arguments), {arguments.output, arguments.overwrite});

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
