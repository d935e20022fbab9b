// espalier calibrate: measures what a message, a byte and each kind of work cost here, for
// `espalier plan`.
#include <filesystem>

#include "commands.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/output_file.hpp"
#include "espalier/base/text.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/job/device.hpp"
#include "espalier/plan/machine.hpp"
#include "espalier/plan/memory.hpp"
#include "espalier/train/report.hpp"
#include "job_in_words.hpp"

namespace espalier {

namespace {

void write_machine(const Communicator& world, const Machine& machine, const std::string& path, bool one_node,
                   const std::string& threads) {
  std::string about =
      fmt::format("{}: measured by `espalier calibrate` on {} with {}, all at work at once.\n", machine.name,
                  counted(world.size(), "rank"), threads);
  if (world.size() == 1)
    about +=
        "One rank has no one to exchange with: network.* and inside.* are assumptions. Run it under mpirun.";
  else if (one_node)
    about += "One node: network.* repeats inside.*; edit it for jobs on several nodes.";
  const auto text = to_toml(machine, about);
  log::info("{}", text);  // before it is written: measuring took its time
  agree(world, [&] {
    if (world.rank() == 0 && !path.empty()) write_file(path, text);
  });
  if (!path.empty()) log::info("machine: {}", path);
}

}  // namespace

void calibrate_command(const Communicator& world, const CalibrateArguments& arguments) {
  // 1. Who is here, and where do the numbers go?
  agree(world, [&] {
    if (world.rank() == 0) check_replaceable(arguments.output, "machine file", is_machine);
  });
  const auto node = place_on_node(world);
  Machine machine;
  if (arguments.name.find_first_of("\"\\\n") != std::string::npos)
    usage_error("--name {}: give a name without quotes and backslashes", arguments.name);
  machine.name = arguments.name.empty() ? failure_context().host : arguments.name;
  machine.ranks_per_node = world.all_reduce(std::int64_t{node.ranks}, Reduction::kMax, "setup");
  const auto threads = choose_threads({}, node.cores / node.sharers, screen_of(world));
  machine.threads = threads.count;
  machine.memory = fmt::format("{:.0f}GB", static_cast<double>(node_memory()) / 1e9);

  // 2. Messages, and work.
  const auto folder = std::filesystem::path(arguments.output).parent_path().string();
  measure_machine(world, node, folder.empty() ? "." : folder, machine);

  // 3. The machine file.
  write_machine(world, machine, arguments.output, node.ranks == world.size(), threads.in_words("each"));
}

}  // namespace espalier
