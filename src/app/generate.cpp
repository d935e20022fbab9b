// espalier generate: a random graph of any size, the same for every number of ranks.
#include "espalier/graph/generate.hpp"

#include "commands.hpp"
#include "espalier/base/clock.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/signals.hpp"
#include "espalier/base/text.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/comm/session.hpp"
#include "espalier/graph/graph_file.hpp"

namespace espalier {

void generate_command(const Communicator& world, const GenerateArguments& arguments) {
  const double start = now();
  const Watchdog watchdog(arguments.stall_minutes, "--stall-minutes");
  note_activity("generating");
  note_consequence("no graph file was written");
  set_memory_advice(
      "use more ranks on more nodes, fewer --features or --half, or a smaller graph (--scale, --edge-factor, "
      "--nodes, --degree, --types, --relations)");
  const OutputFile output(arguments.output, arguments.overwrite);
  const VertexOptions vertices{
      arguments.features, arguments.classes, static_cast<std::uint64_t>(arguments.seed),
      arguments.half,     arguments.labels,  arguments.edge_features};
  if (arguments.kind == "rmat")
    generate_rmat(world,
                  {arguments.scale, arguments.edge_factor, arguments.symmetrize, arguments.drop_self_loops},
                  vertices, output);
  else if (arguments.typed)
    generate_planted_types(world,
                           {arguments.types, arguments.relations, !arguments.no_inverse, arguments.homophily},
                           vertices, output);
  else
    generate_planted(world, {arguments.nodes, arguments.degree, arguments.homophily}, vertices, output);
  note_activity("checking the graph file");
  note_consequence("the graph file is written, but not checked");
  const GraphFile file(world, arguments.output);
  const auto& info = file.info();
  const auto vertices_in_words =
      info.typed ? fmt::format("{} of {}, {} of {}", counted(info.nodes, "vertex"),
                               counted(std::ssize(info.schema.types()), "type"), counted(info.edges, "edge"),
                               counted(std::ssize(info.schema.relations()), "relation"))
                 : fmt::format("{}, {}, {}", counted(info.nodes, "vertex"), counted(info.edges, "edge"),
                               counted(info.features, "feature"));
  log::info("wrote      {}: {}, {}, in {:.1f} s", arguments.output, vertices_in_words,
            counted(info.classes, info.multi_label ? "label" : "class"), now() - start);
}

}  // namespace espalier
