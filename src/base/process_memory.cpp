#include "espalier/base/process_memory.hpp"

#include <fstream>
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

}  // namespace espalier
