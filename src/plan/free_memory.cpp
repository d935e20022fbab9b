// How much memory this node has, and how much of it is free: the machine's, or less where a control
// group sets a limit.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "espalier/plan/memory.hpp"

namespace espalier {

namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();

struct GroupMemory {
  double limit = kNone;  ///< the least of this process's control group and the groups above it
  double left = kNone;   ///< the least that one of them has left
};

double number_in(const std::filesystem::path& file, double otherwise) {
  std::ifstream stream(file);
  double number = 0;
  return stream >> number ? number : otherwise;  // "max" is no number: no limit here
}

// Pages of files that the kernel gives up when memory is asked for.
double reclaimable(const std::filesystem::path& group) {
  std::ifstream stream(group / "memory.stat");
  std::string name;
  for (double bytes = 0; stream >> name >> bytes;)
    if (name == "inactive_file" || name == "total_inactive_file") return bytes;
  return 0;
}

// Control groups of version 2, and the memory controller of version 1.
GroupMemory control_group_memory() {
  GroupMemory memory;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const bool second = line.starts_with("0::/");
    const auto first = line.find(":memory:/");
    if (!second && first == std::string::npos) continue;
    const std::filesystem::path root = second ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    const char* limit_name = second ? "memory.max" : "memory.limit_in_bytes";
    const char* used_name = second ? "memory.current" : "memory.usage_in_bytes";
    for (std::filesystem::path group = line.substr(second ? 4 : first + 9);; group = group.parent_path()) {
      const auto limit = number_in(root / group / limit_name, kNone);
      memory.limit = std::min(memory.limit, limit);
      const auto used = number_in(root / group / used_name, 0) - reclaimable(root / group);
      memory.left = std::min(memory.left, std::max(0.0, limit - std::max(0.0, used)));
      if (group.empty()) break;
    }
  }
  return memory;
}

double memory_of_machine() {
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
}

// MemAvailable: what can be had without swapping.
double available_of_machine() {
  std::ifstream stream("/proc/meminfo");
  for (std::string word; stream >> word;)
    if (word == "MemAvailable:") {
      double kilobytes = 0;
      if (stream >> kilobytes) return 1024 * kilobytes;
    }
  return memory_of_machine();
}

}  // namespace

std::int64_t node_memory() {
  return static_cast<std::int64_t>(std::min(memory_of_machine(), control_group_memory().limit));
}

FreeMemory free_memory() {
  const double machine = available_of_machine(), group = control_group_memory().left;
  if (group < machine) return {static_cast<std::int64_t>(group), "what its control group has left"};
  return {static_cast<std::int64_t>(machine), "what this node has free"};
}

}  // namespace espalier
