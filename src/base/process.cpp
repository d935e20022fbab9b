#include "espalier/base/process.hpp"

#include <fstream>
#include <sstream>
#include <string>

namespace espalier {

std::int64_t process_memory(const char* field) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == std::string(field) + ":") {
      std::int64_t kilobytes = 0;
      status >> kilobytes;
      return kilobytes * 1024;
    }
  return 0;
}

std::int64_t program_memory() {
  static const std::int64_t bytes = process_memory("VmRSS");
  return bytes;
}

// Field 22 of /proc/PID/stat; the name, field 2, stands in brackets and may hold anything.
std::uint64_t process_start(std::int64_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const auto name_ends = line.rfind(')');
  if (name_ends == std::string::npos) return 0;
  std::istringstream fields(line.substr(name_ends + 1));
  std::string skipped;
  for (int field = 3; field < 22; ++field) fields >> skipped;
  std::uint64_t ticks = 0;
  fields >> ticks;
  return ticks;
}

}  // namespace espalier
