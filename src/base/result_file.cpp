#include "espalier/base/result_file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "espalier/base/temporary_file.hpp"

namespace espalier {

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

}  // namespace espalier
