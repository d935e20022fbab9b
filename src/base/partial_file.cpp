#include "espalier/base/partial_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <filesystem>

#include "espalier/base/output_lock.hpp"

namespace espalier {

namespace fs = std::filesystem;

namespace {

constexpr const char* kBetween = ".partial-";

// Does its name say a process that this host has not, and is it unlocked?
bool is_left_over(const std::string& path, std::string_view number) {
  pid_t process = 0;
  const auto [end, wrong] = std::from_chars(number.data(), number.data() + number.size(), process);
  if (wrong != std::errc() || end != number.data() + number.size() || process < 1 || kill(process, 0) == 0 ||
      errno != ESRCH)
    return false;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  const bool unlocked = file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0;
  if (file >= 0) close(file);
  return unlocked;
}

}  // namespace

PartialFile::PartialFile(const std::string& path) : name_(fmt::format("{}{}{}", path, kBetween, getpid())) {
  const auto folder = fs::path(path).has_parent_path() ? fs::path(path).parent_path() : fs::path(".");
  if (file_locks_of(folder.string()) != FileLocks::kEverywhere) return;
  const auto begins = fs::path(path).filename().string() + kBetween;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none))
    if (const auto name = entry.path().filename().string();
        name.starts_with(begins) &&
        is_left_over(entry.path().string(), std::string_view(name).substr(begins.size())))
      fs::remove(entry.path(), none);
}

PartialFile::~PartialFile() {
  if (lock_ >= 0) close(lock_);
}

void PartialFile::hold() {
  lock_ = open(name_.c_str(), O_RDONLY | O_CLOEXEC);
  if (lock_ >= 0) flock(lock_, LOCK_SH | LOCK_NB);
}

}  // namespace espalier
