// The two ways to fail.
//
// A *user error* (config, files, memory) is an exception, UserError. It carries the exit code of
// the design and one message that says what is wrong, where, and what to do. Ranks agree on it
// (comm/communicator.hpp), rank 0 prints it.
//
// A *failed check* is a bug or a broken machine. ESPALIER_CHECK prints rank, host, file, line and
// expression and ends the whole job through the abort hook that comm/ installs (MPI_Abort), so no
// rank is left waiting.
#pragma once

#include <fmt/core.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace espalier {

enum class ExitCode : int {
  kDone = 0,
  kInternal = 1,
  kUsage = 2,
  kInput = 3,
  kMemory = 4,
  kSignal = 5,
  kDiverged = 6  ///< numbers that are not finite came out of finite ones
};

class UserError : public std::runtime_error {
 public:
  UserError(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

/// Throws a UserError with exit code 2: the command line or the config is wrong.
template <class... Args>
[[noreturn]] void usage_error(fmt::format_string<Args...> format, Args&&... args) {
  throw UserError(ExitCode::kUsage, fmt::format(format, std::forward<Args>(args)...));
}

/// Throws a UserError with exit code 3: an input file is missing, damaged or inconsistent.
template <class... Args>
[[noreturn]] void input_error(fmt::format_string<Args...> format, Args&&... args) {
  throw UserError(ExitCode::kInput, fmt::format(format, std::forward<Args>(args)...));
}

/// Throws a UserError with exit code 4: the job does not fit in memory.
template <class... Args>
[[noreturn]] void memory_error(fmt::format_string<Args...> format, Args&&... args) {
  throw UserError(ExitCode::kMemory, fmt::format(format, std::forward<Args>(args)...));
}

/// Who this process is and how it ends the job; comm/ replaces the defaults (rank 0 of 1,
/// std::abort).
struct FailureContext {
  int rank = 0;
  std::string host = "localhost";
  std::function<void(int exit_code)> abort_job;
  int ranks = 1;
  bool throws = false;  ///< a library: a failed check is a CheckFailed, and the process goes on
};
FailureContext& failure_context();

/// A failed check, in a library: what was at work may be half done, and other ranks may
/// wait for it.
class CheckFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Prints "rank R on HOST: FILE:LINE: check failed: EXPRESSION: MESSAGE" to stderr and ends the
/// whole job; in a library throws that, where a thread can.
[[noreturn]] void fail_check(const char* file, int line, const char* expression, std::string_view message);

/// Prints `message` with rank and host to stderr and ends the whole job with `code`. For errors
/// that one rank meets alone, outside of any agreement (an exception at top level, std::bad_alloc).
[[noreturn]] void fail_job(ExitCode code, std::string_view message);

}  // namespace espalier

#define ESPALIER_CHECK(expression, ...)                                                  \
  do {                                                                                   \
    if (!(expression)) [[unlikely]]                                                      \
      ::espalier::fail_check(__FILE__, __LINE__, #expression, fmt::format(__VA_ARGS__)); \
  } while (false)
