#include "espalier/comm/node_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "espalier/base/error.hpp"
#include "espalier/base/process.hpp"

namespace espalier {

namespace {

// Whose file it is. `start` tells its process from another of the same number, as a container's.
struct Maker {
  int pid = 0, file = -1;
  std::uint64_t start = 0;
};

Maker make_file(std::int64_t bytes) {
  Maker mine{.pid = getpid(), .file = memfd_create("espalier-rows", MFD_CLOEXEC)};
  mine.start = process_start(mine.pid);
  if (mine.file >= 0 && ftruncate(mine.file, bytes) != 0) {
    close(mine.file);
    mine.file = -1;
  }
  return mine;
}

std::byte* map_file_of(const Maker& maker, std::int64_t bytes) {
  if (maker.file < 0 || process_start(maker.pid) != maker.start) return nullptr;
  const auto path = "/proc/" + std::to_string(maker.pid) + "/fd/" + std::to_string(maker.file);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  const auto size = static_cast<std::size_t>(bytes);
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) return nullptr;
  madvise(memory, size, MADV_HUGEPAGE);  // a refusal costs speed alone
  return static_cast<std::byte*>(memory);
}

}  // namespace

Communicator ranks_of_node(const Communicator& world) {
  struct Host {
    char name[256] = {};
  } mine;
  failure_context().host.copy(mine.name, sizeof mine.name - 1);
  const auto hosts = world.all_gather(mine, "setup");
  const auto first =
      std::ranges::find_if(hosts, [&](const Host& host) { return std::strcmp(host.name, mine.name) == 0; });
  return world.split(static_cast<int>(first - hosts.begin()), world.rank());
}

std::unique_ptr<NodeMemory> NodeMemory::make(const Communicator& ranks, std::int64_t bytes) {
  bytes = std::max<std::int64_t>(bytes, 1);
  Maker maker;
  if (ranks.rank() == 0) maker = make_file(bytes);
  const int own = maker.file;
  ranks.broadcast(std::span<Maker>(&maker, 1), 0, "setup");
  auto* const data = map_file_of(maker, bytes);
  const bool all = ranks.all_reduce(std::int64_t{data != nullptr}, Reduction::kMin, "setup") != 0;
  if (own >= 0) close(own);  // all have it
  std::unique_ptr<NodeMemory> memory(data == nullptr ? nullptr : new NodeMemory(data, bytes));
  return all ? std::move(memory) : nullptr;
}

NodeMemory::~NodeMemory() {
  munmap(data_, static_cast<std::size_t>(size_));
}

}  // namespace espalier
