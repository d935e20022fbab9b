// Reading a file that may be damaged through a library that may not survive it. HDF5 1.10 believes
// the lengths and addresses that it reads: one wrong byte makes it loop for ever, take all memory,
// or read where nothing is.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace espalier {

/// Runs `work` in this thread. When it crashes, computes for longer than `seconds` (waiting for
/// a disk does not count) or when memory beyond `bytes` more than now is taken and the library
/// does not bear that, `message` is printed and the job ends with exit code 3: what the library
/// holds is not to be touched again. `work` must not communicate: it is for one rank, before the
/// others follow. Not for a library: signals and limits are those of the process.
void run_crash_guarded(double seconds, std::int64_t bytes, const std::string& message,
                       const std::function<void()>& work);

/// For the way out after an error that was told: a fault from here on ends the process with `code`.
/// At the end of MPI a thread of Open MPI 4.1 may still run in a library that is gone, once in
/// thousands of starts on a busy machine; the signal would hide what the error was.
void keep_exit_code(int code);

}  // namespace espalier
