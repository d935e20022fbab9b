#include "espalier/job/job_config.hpp"

#include "espalier/base/input_text.hpp"
#include "espalier/base/progress.hpp"
#include "espalier/comm/agree.hpp"
#include "espalier/job/job_check.hpp"

namespace espalier {

Config load_job_config(const Communicator& world, const std::string& path,
                       const std::vector<std::string>& overrides, bool needs_graph) {
  note_activity("reading the config");
  std::string text;
  agree(world, [&] {
    if (world.rank() == 0) text = read_input_text(path, "config file");
  });
  text = world.broadcast_text(text, 0, "setup");
  auto config = parse_config(text, path, overrides);
  check_job(Moment::kConfig, {.world = world, .config = config, .source = path});
  if (config.graph.file.empty() && needs_graph)
    usage_error(
        "{}: {}graph.file is missing; name a file that `espalier import` or `espalier generate` wrote, here "
        "or as graph.file=PATH on the command line",
        path, text.find_first_not_of(" \t\r\n") == std::string::npos ? "is empty, and " : "");
  return config;
}

}  // namespace espalier
