// Which kernels ran, for who asks whether every kernel has a test (tests/watched.py).
#include <link.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>

#include "cuda_runtime.h"

namespace espalier_emulation {

namespace {

// Each is written when it first runs, as a test may end the program. The first line names
// the program.
class Launches {
 public:
  void note(const std::string& kernel) {
    if (file_ == nullptr || !known_.insert(kernel).second) return;
    std::fprintf(file_, "%s\n", kernel.c_str());
    std::fflush(file_);
  }
  bool asked_for() const { return file_ != nullptr; }

 private:
  static std::FILE* open() {
    const char* folder = std::getenv("ESPALIER_EMULATED_LAUNCHES");
    if (folder == nullptr) return nullptr;
    std::string name = std::string(folder) + "/XXXXXX";
    const int file = mkstemp(name.data());
    char program[4096] = {};
    if (file < 0 || readlink("/proc/self/exe", program, sizeof program - 1) < 0) return nullptr;
    auto* const stream = fdopen(file, "w");
    std::fprintf(stream, "%s\n", program);
    return stream;
  }

  std::FILE* file_ = open();
  std::set<std::string> known_;
};
Launches& launches() {
  static Launches of_process;
  return of_process;
}

// Of the program, which addresses of its symbols are relative to.
std::uintptr_t begin_of_program() {
  std::uintptr_t begin = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* found) {
        *static_cast<std::uintptr_t*>(found) = info->dlpi_addr;
        return 1;
      },
      &begin);
  return begin;
}

}  // namespace

void note_launch(const void* kernel) {
  if (!launches().asked_for()) return;
  static const std::uintptr_t begin = begin_of_program();
  char place[32];
  std::snprintf(place, sizeof place, "0x%zx",
                static_cast<std::size_t>(reinterpret_cast<std::uintptr_t>(kernel) - begin));
  launches().note(place);
}

}  // namespace espalier_emulation
