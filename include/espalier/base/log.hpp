// Logging for people: rank 0 speaks, other ranks only when something is wrong; nobody before
// set_up(), so that a program that uses the library hears nothing that it did not ask for. spdlog
// is named in log.cpp alone (it costs 5 s of compile time per file that includes it).
#pragma once

#include <fmt/core.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace espalier::log {

enum class Level { kDebug, kInfo, kWarning, kError };

/// Sets what this rank prints. Ranks above 0 print warnings and errors only, with their
/// rank in front.
void set_up(int rank, Level lowest);

/// Prints one line (info: to stdout without decoration; warnings and errors: to stderr, prefixed).
/// Control characters other than newlines and tabs are escaped; warnings and errors are one line of
/// bounded length.
void write(Level level, std::string_view line);

bool enabled(Level level);

/// Prints `text` to stdout as it is, whatever the level: a result that no file could take.
void print(std::string_view text);

/// Why stdout did not take all that was printed so far ("No space left on device"); empty
/// where it did.
std::string output_failure();

template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kDebug)) write(Level::kDebug, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kInfo)) write(Level::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void warning(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::kWarning, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::kError, fmt::format(format, std::forward<Args>(args)...));
}

/// Nothing but warnings is said while it lives.
class Quietly {
 public:
  Quietly();
  ~Quietly();
  Quietly(const Quietly&) = delete;
  Quietly& operator=(const Quietly&) = delete;

 private:
  Level was_;
};

/// Who is told what people should know of a job; empty: nobody. `write` tells it on the screen.
using Listener = std::function<void(Level level, std::string_view words)>;

template <class... Args>
void tell(const Listener& listener, Level level, fmt::format_string<Args...> format, Args&&... args) {
  if (listener) listener(level, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace espalier::log
