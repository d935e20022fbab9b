#include "espalier/base/output_file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "espalier/base/error.hpp"
#include "espalier/base/output_lock.hpp"

namespace espalier {

namespace fs = std::filesystem;

namespace {

// A link that leads nowhere has the name, too.
bool name_is_taken(const std::string& path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(path, error));
}

// 0, or the reason why `to` does not name the file now. EEXIST: something has this name.
int rename_unless_taken(const std::string& from, const std::string& to) {
#ifdef RENAME_NOREPLACE
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP) return errno;
#endif
  // Network file systems know no such rename, but a second name that must be new.
  if (link(from.c_str(), to.c_str()) == 0) {
    unlink(from.c_str());
    return 0;
  }
  if (errno == EEXIST) return EEXIST;
  // Nor second names: there remains to look, and hope for a moment.
  if (name_is_taken(to)) return EEXIST;
  return std::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

// The work is done, but its place is taken: it stays beside it, under a name that says so.
[[noreturn]] void keep_beside(const std::string& temporary, const std::string& path) {
  const auto kept = fmt::format("{}.done-{}", path, getpid());
  if (const int reason = rename_unless_taken(temporary, kept); reason != 0)
    usage_error("cannot rename {} to {}: {}", temporary, kept, std::strerror(reason));
  usage_error(
      "{} appeared while this command was at work and is not replaced; the finished file is {}: rename it, "
      "or give --overwrite next time",
      path, kept);
}

}  // namespace

std::string other_than_file(const std::string& path) {
  std::error_code error;
  switch (fs::status(path, error).type()) {
    case fs::file_type::block:
    case fs::file_type::character:
      return "device";
    case fs::file_type::fifo:
      return "pipe";
    case fs::file_type::socket:
      return "socket";
    case fs::file_type::directory:
      return "folder";
    default:
      return {};
  }
}

void check_is_file(const std::string& path) {
  const auto other = other_than_file(path);
  if (!other.empty() && other != "folder")
    usage_error("cannot write {}: it is a {}, not a file; give -o the name of a file", path, other);
}

void check_output(const OutputFile& output) {
  const auto& path = output.path;
  std::error_code error;
  if (path.empty() || other_than_file(path) == "folder")
    usage_error("cannot write '{}': is a folder, not a file name", path);
  check_is_file(path);
  const auto folder = fs::path(path).has_parent_path() ? fs::path(path).parent_path() : fs::path(".");
  if (!fs::is_directory(folder, error))
    usage_error("cannot write {}: there is no folder {}; create it first", path, folder.string());
  if (!output.overwrite && name_is_taken(path))
    usage_error("{} exists already; give another name, or --overwrite to replace it", path);
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    usage_error("cannot write {}: folder {}: {}", path, folder.string(), std::strerror(errno));
}

void put_in_place(const std::string& temporary, const OutputFile& output) {
  const auto& path = output.path;
  const int reason = !output.overwrite ? rename_unless_taken(temporary, path)
                     : std::rename(temporary.c_str(), path.c_str()) == 0 ? 0
                                                                         : errno;
  if (reason == EEXIST && !output.overwrite) keep_beside(temporary, path);
  if (reason != 0) usage_error("cannot rename {} to {}: {}", temporary, path, std::strerror(reason));
}

namespace {

// Of fixed size and without locks, so that a signal handler may read it at any moment.
struct Entry {
  std::atomic<bool> taken{false};     // someone is writing the path, or it stands
  std::atomic<bool> standing{false};  // the path is whole
  char path[PATH_MAX] = {};
};
constexpr int kMost = 16;
constinit std::array<Entry, kMost> entries;

}  // namespace

TemporaryFile::TemporaryFile(const std::string& path) : place_(-1) {
  if (path.size() >= PATH_MAX) return;
  for (int place = 0; place < kMost && place_ < 0; ++place)
    if (!entries[place].taken.exchange(true)) place_ = place;
  if (place_ < 0) return;
  auto& entry = entries[place_];
  std::memcpy(entry.path, path.c_str(), path.size() + 1);
  entry.standing = true;
}

TemporaryFile::~TemporaryFile() {
  if (place_ < 0) return;
  auto& entry = entries[place_];
  entry.standing = false;
  entry.taken = false;
}

void remove_temporary_files() {
  for (auto& entry : entries)
    if (entry.standing) unlink(entry.path);
}

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

namespace {

// All of `text`; false, with errno, when some of it was not taken.
bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const auto part = ::write(file, text.data(), text.size());
    if (part < 0 && errno == EINTR) continue;
    if (part == 0) errno = ENOSPC;
    if (part <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(part));
  }
  return true;
}

int open_to_write(const std::string& path, int flags) {
  return open(path.c_str(), O_WRONLY | O_CLOEXEC | flags, 0666);
}

std::string reason() {
  return std::strerror(errno);
}

// Some file systems report what did not fit when the file is closed.
std::string close_after(int file, std::string problem) {
  if (close(file) != 0 && problem.empty()) return reason();
  return problem;
}

bool is_regular(int file) {
  struct stat about = {};
  return fstat(file, &about) == 0 && S_ISREG(about.st_mode);
}

// The temporary file of this process beside `path`, whole and on the disk.
std::string write_beside(const std::string& temporary, std::string_view text) {
  const int file = open_to_write(temporary, O_CREAT | O_TRUNC);
  if (file < 0) return reason();
  return close_after(file, write_all(file, text) && fsync(file) == 0 ? std::string() : reason());
}

}  // namespace

std::string replace_file(const std::string& path, std::string_view text) {
  std::error_code error;
  std::string target = path;
  if (std::filesystem::is_symlink(path, error)) {
    target = std::filesystem::weakly_canonical(path, error).string();
    if (error) return error.message();
  }
  const auto status = std::filesystem::status(target, error);
  if (std::filesystem::is_other(status)) {
    const int device = open_to_write(target, 0);
    if (device < 0) return reason();
    return close_after(device, write_all(device, text) ? std::string() : reason());
  }
  const auto temporary = fmt::format("{}.tmp-{}", target, getpid());
  const TemporaryFile watched(temporary);
  auto problem = write_beside(temporary, text);
  if (problem.empty() && std::rename(temporary.c_str(), target.c_str()) != 0) problem = reason();
  if (!problem.empty()) std::filesystem::remove(temporary, error);
  return problem;
}

std::string GrowingFile::write() {
  const int file = open_to_write(path_, O_CREAT);
  if (file < 0) return reason();
  const auto problem = close_after(file, write_to(file));
  if (problem.empty()) written_ = text_.size();
  return problem;
}

std::string GrowingFile::write_to(int file) {
  if (is_regular(file)) {
    const auto end = lseek(file, 0, SEEK_END);
    if (end < 0) return reason();
    if (static_cast<std::size_t>(end) < written_) written_ = 0;
    // What stands behind was torn off a line that could not be taken back.
    const auto good = static_cast<off_t>(written_);
    if (ftruncate(file, good) != 0 || lseek(file, good, SEEK_SET) != good) return reason();
  }
  if (write_all(file, std::string_view(text_).substr(written_))) return {};
  auto problem = reason();
  if (is_regular(file) && ftruncate(file, static_cast<off_t>(written_)) != 0)
    problem += ", and a torn line stays for now";
  return problem;
}

void check_replaceable(const std::string& path, const char* kind,
                       const std::function<bool(const std::string& text)>& is_one) {
  constexpr std::uintmax_t kLargest = std::uintmax_t{1} << 26;  // bytes; plans have a few kilobytes
  check_is_file(path);
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    return;  // nothing there, or writing will say what it is
  const auto size = std::filesystem::file_size(path, error);
  std::stringstream text;
  if (size == 0 || (size <= kLargest && text << std::ifstream(path).rdbuf() && is_one(text.str()))) return;
  usage_error("{} exists and is not a {}; give another name with -o, or remove it first", path, kind);
}

}  // namespace espalier
