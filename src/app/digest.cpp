// espalier digest: the digests of what a graph file holds, checked against those that stand in it,
// or written into it. For files that h5py or another program made.
#include "commands.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/graph/graph_file.hpp"
#include "espalier/graph/graph_writer.hpp"

namespace espalier {

void digest_command(const Communicator& world, const DigestArguments& arguments) {
  const Watchdog watchdog(arguments.stall_minutes, "--stall-minutes");
  note_activity("reading the graph file");
  // 1. Read all of it. To write digests anew, what stands there does not matter.
  ContentDigests found;
  bool has_digest = false;
  {
    GraphView view(arguments.write ? Verify::kRenew : Verify::kYes);
    view.apart = true;  // as it lies there
    const GraphFile file(world, arguments.file, view);
    read_everything(world, file);
    check_splits(world, file);
    found = file.content();
    has_digest = file.has_digest();
  }
  for (const auto& [name, digest] : found.datasets) log::info("{}  {}", hex(digest), name);
  log::info("{}  {}", hex(*found.file), arguments.file);

  // 2. Say, or write.
  if (arguments.write) {
    write_digests(world, arguments.file, found);
    log::info("{} now has these digests", arguments.file);
  } else if (has_digest) {
    log::info("{} holds what its digests say", arguments.file);
  } else {
    log::info("the file has no digest; `espalier digest {} --write` writes these into it", arguments.file);
  }
}

}  // namespace espalier
