#include "espalier/base/process.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
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

// A field of /proc/PID/stat from the third on; the name, the second, stands in brackets and may
// hold anything.
static std::uint64_t field_of_process(std::int64_t pid, int wanted) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const auto name_ends = line.rfind(')');
  if (name_ends == std::string::npos) return 0;
  std::istringstream fields(line.substr(name_ends + 1));
  std::string skipped;
  for (int field = 3; field < wanted; ++field) fields >> skipped;
  std::uint64_t value = 0;
  fields >> value;
  return value;
}

std::uint64_t process_start(std::int64_t pid) {
  return field_of_process(pid, 22);
}

std::int64_t parent_of_process(std::int64_t pid) {
  return static_cast<std::int64_t>(field_of_process(pid, 4));
}

std::string program_of_library() {
  Dl_info here = {};
  if (dladdr(reinterpret_cast<const void*>(&program_of_library), &here) == 0 || here.dli_fname == nullptr)
    return {};
  std::error_code error;
  const auto folder = std::filesystem::canonical(here.dli_fname, error).parent_path();
  for (const auto& path : {folder / "espalier", folder.parent_path() / "bin" / "espalier"})
    if (std::filesystem::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0) return path;
  return {};
}

bool is_set(const char* variable) {
  const char* text = std::getenv(variable);
  return text != nullptr && std::strcmp(text, "0") != 0 && std::strcmp(text, "") != 0;
}

}  // namespace espalier
