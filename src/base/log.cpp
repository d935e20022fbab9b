#include "espalier/base/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "espalier/base/text.hpp"

namespace espalier::log {

namespace {
struct Loggers {
  std::shared_ptr<spdlog::logger> out =
      std::make_shared<spdlog::logger>("out", std::make_shared<spdlog::sinks::stdout_sink_mt>());
  std::shared_ptr<spdlog::logger> err =
      std::make_shared<spdlog::logger>("err", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  Level lowest = Level::kInfo;
  bool asked = false;  // was it set up?
  Loggers() {
    out->set_pattern("%v");
    out->set_level(spdlog::level::debug);
    out->flush_on(spdlog::level::debug);
    err->set_pattern("espalier: %v");
    err->flush_on(spdlog::level::debug);
  }
};
Loggers& loggers() {
  static Loggers instance;
  return instance;
}

std::string& failure() {
  static std::string reason;
  return reason;
}

// spdlog passes over what stdout refuses, but the stream remembers it; errno is of the first time.
void note_failure() {
  auto& reason = failure();
  if (std::ferror(stdout) != 0 && reason.empty())
    reason = errno != 0 ? std::strerror(errno) : "it cannot be written";
}
}  // namespace

void set_up(int rank, Level lowest) {
  loggers().asked = true;
  loggers().lowest = rank == 0 ? lowest : Level::kWarning;
  if (rank > 0) loggers().err->set_pattern("espalier: rank " + std::to_string(rank) + ": %v");
}

bool enabled(Level level) {
  return loggers().asked && level >= loggers().lowest;
}

Quietly::Quietly() : was_(loggers().lowest) {
  loggers().lowest = std::max(was_, Level::kWarning);
}

Quietly::~Quietly() {
  loggers().lowest = was_;
}

void write(Level level, std::string_view line) {
  if (!enabled(level)) return;
  switch (level) {
    case Level::kDebug:
      loggers().out->debug("{}", printable(line));
      note_failure();
      break;
    case Level::kInfo:
      loggers().out->info("{}", printable(line));
      note_failure();
      break;
    case Level::kWarning:
      loggers().err->warn("warning: {}", excerpt(line));
      break;
    case Level::kError:
      loggers().err->error("error: {}", excerpt(line));
      break;
  }
}

void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
  note_failure();
}

std::string output_failure() {
  std::fflush(stdout);
  note_failure();
  return failure();
}

}  // namespace espalier::log
