// What the system says of processes.
#pragma once

#include <cstdint>
#include <string>

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

}  // namespace espalier
