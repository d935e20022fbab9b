#include "espalier/comm/node_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "espalier/base/final_message.hpp"
#include "espalier/base/process.hpp"
#include "espalier/comm/session.hpp"

namespace espalier {

namespace {

// Whose file it is. `start` tells its process from another of the same number, as a container's.
struct Maker {
  int pid = 0, file = -1;
  std::uint64_t start = 0;

  bool is_seen() const { return process_start(pid) == start; }
};

Maker make_file(const char* name, std::int64_t bytes) {
  Maker mine{.pid = getpid(), .file = memfd_create(name, MFD_CLOEXEC)};
  mine.start = process_start(mine.pid);
  if (mine.file >= 0 && ftruncate(mine.file, bytes) != 0) {
    close(mine.file);
    mine.file = -1;
  }
  return mine;
}

// Zeros at first; null where it cannot be had.
void* map_file_of(const Maker& maker, std::int64_t bytes) {
  if (maker.file < 0 || !maker.is_seen()) return nullptr;
  const auto path = "/proc/" + std::to_string(maker.pid) + "/fd/" + std::to_string(maker.file);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  void* memory = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return memory == MAP_FAILED ? nullptr : memory;
}

// What a rank says of itself.
struct Introduction {
  HostName host;
  Maker maker;
};

}  // namespace

Communicator ranks_of_node(const Communicator& world) {
  const auto hosts = world.all_gather(HostName(), "setup");
  const auto first = std::ranges::find(hosts, HostName());
  return world.split(static_cast<int>(first - hosts.begin()), world.rank());
}

void exchange_node_peers(const Communicator& world) {
  using Flag = std::atomic<int>;  // in the file of the first rank of its node
  if (world.size() == 1) return;
  const Introduction mine = {{}, make_file("espalier", sizeof(Flag))};
  const auto all = world.all_gather(mine, "setup");
  std::vector<NodePeer> peers;
  const Maker* first = nullptr;
  for (int r = 0; r < world.size(); ++r) {
    const auto& other = all[r];
    if (other.host != mine.host || !other.maker.is_seen()) continue;
    if (first == nullptr) first = &other.maker;
    if (r != world.rank()) peers.push_back({r, other.maker.pid});
  }
  set_node_peers(std::move(peers),
                 first == nullptr ? nullptr : static_cast<Flag*>(map_file_of(*first, sizeof(Flag))));
  world.barrier();  // the file in memory stays until all have it
  if (mine.maker.file >= 0) close(mine.maker.file);
}

std::unique_ptr<NodeMemory> NodeMemory::make(const Communicator& ranks, std::int64_t bytes) {
  bytes = std::max<std::int64_t>(bytes, 1);
  Maker maker;
  if (ranks.rank() == 0) maker = make_file("espalier-rows", bytes);
  const int own = maker.file;
  ranks.broadcast(std::span<Maker>(&maker, 1), 0, "setup");
  void* const data = map_file_of(maker, bytes);
  const bool all = ranks.all_reduce(std::int64_t{data != nullptr}, Reduction::kMin, "setup") != 0;
  if (own >= 0) close(own);  // all have it
  if (data == nullptr) return nullptr;
  madvise(data, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);  // a refusal costs speed alone
  std::unique_ptr<NodeMemory> memory(new NodeMemory(static_cast<std::byte*>(data), bytes));
  return all ? std::move(memory) : nullptr;
}

NodeMemory::~NodeMemory() {
  munmap(data_, static_cast<std::size_t>(size_));
}

}  // namespace espalier
