// Logging for people: rank 0 speaks, other ranks only when something is wrong.
// spdlog is named in log.cpp alone (it costs 5 s of compile time per file that includes it).
#pragma once

#include <fmt/core.h>

#include <string_view>
#include <utility>

namespace espalier::log {

enum class Level { kDebug, kInfo, kWarning, kError };

/// Sets what this rank prints. Ranks above 0 print warnings and errors only, with their rank in front.
void set_up(int rank, Level lowest);

/// Prints one line (info: to stdout without decoration; warnings and errors: to stderr, prefixed).
void write(Level level, std::string_view line);

bool enabled(Level level);

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

}  // namespace espalier::log
