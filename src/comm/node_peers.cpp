#include "espalier/comm/node_peers.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "espalier/base/error.hpp"
#include "espalier/base/final_message.hpp"
#include "espalier/base/process.hpp"

namespace espalier {

namespace {

using Flag = std::atomic<int>;

// What a rank says of itself. `start` tells its process from another of the same number.
struct Introduction {
  char host[256] = {};
  int pid = 0;
  int flag = -1;  // a file in memory, the flag's place if this rank is the first of its node
  std::uint64_t start = 0;
};

Introduction introduce_myself() {
  Introduction mine;
  failure_context().host.copy(mine.host, sizeof mine.host - 1);
  mine.pid = getpid();
  mine.start = process_start(mine.pid);
  mine.flag = memfd_create("espalier", MFD_CLOEXEC);
  if (mine.flag >= 0 && ftruncate(mine.flag, sizeof(Flag)) != 0) mine.flag = -1;
  return mine;
}

// The flag of a rank, as it stands in the memory of both; null where that cannot be had.
Flag* map_flag_of(const Introduction& rank) {
  const auto path = "/proc/" + std::to_string(rank.pid) + "/fd/" + std::to_string(rank.flag);
  const int file = rank.flag < 0 ? -1 : open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  void* memory = mmap(nullptr, sizeof(Flag), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return memory == MAP_FAILED ? nullptr : static_cast<Flag*>(memory);  // zeros, as it was made
}

}  // namespace

void exchange_node_peers(const Communicator& world) {
  if (world.size() == 1) return;
  const auto mine = introduce_myself();
  const auto all = world.all_gather(mine, "setup");
  std::vector<NodePeer> peers;
  const Introduction* first = nullptr;
  for (int r = 0; r < world.size(); ++r) {
    const auto& other = all[r];
    if (std::strcmp(other.host, mine.host) != 0 || process_start(other.pid) != other.start) continue;
    if (first == nullptr) first = &other;
    if (r != world.rank()) peers.push_back({r, other.pid});
  }
  set_node_peers(std::move(peers), first == nullptr ? nullptr : map_flag_of(*first));
  world.barrier();  // the file in memory stays until all have it
  if (mine.flag >= 0) close(mine.flag);
}

}  // namespace espalier
