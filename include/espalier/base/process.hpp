// Processes: what the system says of this one and of others, and work in one of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace espalier {

/// Bytes of a field of /proc/self/status: "VmRSS" what it holds now, "VmHWM" the most it has held.
/// 0 where the system does not say. (getrusage's ru_maxrss would also know the process that started
/// this one.)
std::int64_t process_memory(const char* field);

/// What the program holds before it does anything, its libraries and MPI among it: what VmRSS is
/// when it is first asked for, as main() does.
std::int64_t program_memory();

/// Is a variable of the environment set, to anything but 0?
bool is_set(const char* variable);

/// The program `espalier` beside the shared library that this function is in, as `make` and `make
/// install` put it; empty: there is none.
std::string program_of_library();

/// When a process of this machine started, in ticks since the boot; 0 where there is none. It tells
/// a process from another that has its number later.
std::uint64_t process_start(std::int64_t pid);

/// The process that started it; 0 where there is none.
std::int64_t parent_of_process(std::int64_t pid);

// Work in a process of its own, for libraries that take over signals, print, or end the process
// where memory is short: none of that reaches this process, which only learns how the other ended.

/// How a process ended: with an exit code, or by a signal.
struct Ending {
  int code = 0;
  int signal = 0;  ///< 0: none
  bool good() const { return code == 0 && signal == 0; }
};

/// Runs `work` in a copy of this process that has this thread alone, and waits for its end; what
/// work() returns is the exit code. `work` must not communicate, nor start threads, nor write to
/// files of this process: what it prints is lost, what it changes is too but for SharedMemory. It
/// ends with this process. Throws std::bad_alloc when there can be no such copy.
Ending run_in_child_process(const std::function<int()>& work);

/// Runs a program to its end, which reads nothing and whose words are lost. Nothing of this process
/// is copied, so it may have any threads. Nothing: it cannot be started, or its end is not told.
std::optional<Ending> run_program(const std::string& path, const std::vector<std::string>& arguments);

/// Memory that this process and those that it runs apart have in common, zero at first.
class SharedMemory {
 public:
  /// Throws std::bad_alloc.
  explicit SharedMemory(std::size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  void* data() const { return data_; }

 private:
  std::size_t bytes_;
  void* data_;
};

}  // namespace espalier
