// espalier calibrate: measures what a message, a byte and each kind of work cost here, for
// `espalier plan`.
#include <filesystem>

#include "commands.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/output_file.hpp"
#include "espalier/base/text.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/job/bindings.hpp"
#include "espalier/job/device.hpp"
#include "espalier/plan/core_splits.hpp"
#include "espalier/plan/machine.hpp"
#include "espalier/plan/memory.hpp"
#include "espalier/train/report.hpp"
#include "job_in_words.hpp"

namespace espalier {

namespace {

// Of so many ranks in all.
void write_machine(const Communicator& world, const Machine& machine, const std::string& path, int ranks,
                   bool one_node, const std::string& threads) {
  std::string about =
      fmt::format("{}: measured by `espalier calibrate` on {} with {}, all at work at once.\n", machine.name,
                  counted(ranks, "rank"), threads);
  if (ranks == 1)
    about += fmt::format("One rank has no one to exchange with: network.* and inside.* are assumptions. {}",
                         world.size() == 1 ? "Run it under mpirun." : "Edit them for jobs of several.");
  else if (one_node)
    about += "One node: network.* repeats inside.*; edit it for jobs on several nodes.";
  const auto text = to_toml(machine, about);
  log::info("{}", text);  // before it is written: measuring took its time
  agree(world, [&] {
    if (world.rank() == 0 && !path.empty()) write_file(path, text);
  });
  if (!path.empty()) log::info("machine: {}", path);
}

// The ways to share the cores of a node; empty where there is but one.
std::vector<CoreSplit> compare_splits(const Communicator& world, const NodePlace& node,
                                      const CoreList& near) {
  auto splits = core_splits(std::ssize(near), world.all_reduce(node.ranks, Reduction::kMin, "setup"));
  if (splits.size() < 2) {
    if (near.size() > 1)
      log::info("ranks x threads: to compare, start a rank on each of the {} cores of a node", near.size());
    return {};
  }
  measure_core_splits(world, node, near, splits);
  if (fastest_of(splits) == nullptr)
    log::warning(
        "ranks x threads: not compared, as ranks may not leave the cores they were bound to; start them "
        "unbound (mpirun --bind-to none, srun --cpu-bind=none)");
  else
    log::info("{}\n", core_split_table(splits));
  return splits;
}

// Measures with the ranks of a split, while the others wait. Rank 0 is among them.
void measure_by_split(const Communicator& world, const NodePlace& node, const CoreSplit& split,
                      const CoreList& near, const std::string& folder, Machine& machine, int& measured) {
  const SplitRanks ranks(world, node, split, near);
  machine.ranks_per_node = split.ranks;
  machine.threads = split.threads;
  measured = ranks.group().size();
  if (ranks.takes_part()) measure_machine(ranks.group(), place_on_node(ranks.group()), folder, machine);
  ranks.wait();
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
  auto threads = choose_threads({}, node.cores / node.sharers, screen_of(world));
  machine.threads = threads.count;
  machine.memory = fmt::format("{:.0f}GB", static_cast<double>(node_memory()) / 1e9);

  // 2. Ranks x threads.
  const auto near = cores_of_node(world);
  const auto splits = compare_splits(world, node, near);
  const auto* const fastest = fastest_of(splits);
  machine.core_splits = core_splits_in_words(splits);
  if (arguments.fastest && fastest == nullptr)
    usage_error("--fastest: nothing was compared; start a rank on each core of a node{}", "");

  // 3. Messages, and work.
  const auto parent = std::filesystem::path(arguments.output).parent_path().string();
  const std::string folder = parent.empty() ? "." : parent;
  int ranks = world.size();
  if (arguments.fastest) {
    measure_by_split(world, node, *fastest, near, folder, machine, ranks);
    threads = {static_cast<int>(fastest->threads), "the fastest"};
  } else {
    warn_of_bindings(world, threads.count, screen_of(world));
    measure_machine(world, node, folder, machine);
  }

  // 4. The machine file.
  write_machine(world, machine, arguments.output, ranks, machine.ranks_per_node == ranks,
                threads.in_words("each"));
}

}  // namespace espalier
