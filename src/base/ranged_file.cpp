#include "espalier/base/ranged_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "espalier/base/error.hpp"
#include "espalier/base/output_file.hpp"

namespace espalier {

namespace {

void require_written(bool good) {
  if (!good) throw UserError(ExitCode::kUsage, std::strerror(errno));
}

void require_read(bool good, const std::string& path) {
  if (!good) input_error("{}: cannot be read: {}", path, std::strerror(errno));
}

// Calls transfer(offset), which moves what is left from there on, until it has moved `count`
// bytes, none or too many to count; how many it has moved, or -1.
template <class Transfer>
std::int64_t transfer_all(std::int64_t count, Transfer transfer) {
  std::int64_t done = 0;
  while (done < count) {
    const auto part = static_cast<std::int64_t>(transfer(done));
    if (part < 0 && errno == EINTR) continue;
    if (part < 0) return -1;
    if (part == 0) break;
    done += part;
  }
  return done;
}

}  // namespace

RangedFile RangedFile::create(const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  require_written(file >= 0);
  return {file, path};
}

RangedFile RangedFile::join(const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  require_written(file >= 0);
  return {file, path};
}

RangedFile RangedFile::unnamed(const std::string& folder) {
  auto path = folder + "/espalier-XXXXXX";
  const int file = mkostemp(path.data(), O_CLOEXEC);
  require_written(file >= 0);
  unlink(path.c_str());
  return {file, folder};
}

RangedFile RangedFile::open(const std::string& path) {
  // Opening a pipe would wait for who writes to it.
  if (const auto other = other_than_file(path); !other.empty() && other != "folder")
    input_error("{}: is a {}, not a file", path, other);
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  require_read(file >= 0, path);
  return {file, path};
}

RangedFile::~RangedFile() {
  if (file_ >= 0) close(file_);
}

std::int64_t RangedFile::size() const {
  struct stat status = {};
  require_read(fstat(file_, &status) == 0, path_);
  return status.st_size;
}

void RangedFile::resize(std::int64_t size) {
  require_written(ftruncate(file_, size) == 0);
}

void RangedFile::write(std::int64_t at, const void* from, std::int64_t count) {
  errno = 0;
  const auto done = transfer_all(count, [&](std::int64_t offset) {
    return pwrite(file_, static_cast<const char*>(from) + offset, static_cast<std::size_t>(count - offset),
                  at + offset);
  });
  require_written(done == count);
}

std::int64_t RangedFile::read(std::int64_t at, void* to, std::int64_t count) const {
  const auto done = transfer_all(count, [&](std::int64_t offset) {
    return pread(file_, static_cast<char*>(to) + offset, static_cast<std::size_t>(count - offset),
                 at + offset);
  });
  require_read(done >= 0, path_);
  return done;
}

void RangedFile::sync() {
  require_written(fsync(file_) == 0);
}

void RangedFile::forget() const {
  posix_fadvise(file_, 0, 0, POSIX_FADV_DONTNEED);
}

void RangedFile::expect(std::int64_t at, std::int64_t count) const {
  posix_fadvise(file_, at, count, POSIX_FADV_WILLNEED);
}

std::string bytes_of_file(const std::string& path) {
  const auto file = RangedFile::open(path);
  std::string bytes(static_cast<std::size_t>(file.size()), '\0');
  bytes.resize(static_cast<std::size_t>(file.read(0, bytes.data(), std::ssize(bytes))));
  return bytes;
}

}  // namespace espalier
