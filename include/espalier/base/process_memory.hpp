// What the system says of this process's memory.
#pragma once

#include <cstdint>

namespace espalier {

/// Bytes of a field of /proc/self/status: "VmRSS" what it holds now, "VmHWM" the most it has held. 0 where the system does
/// not say. (getrusage's ru_maxrss would also know the process that started this one.)
std::int64_t process_memory(const char* field);

}  // namespace espalier
