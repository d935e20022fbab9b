// A file that several processes write or read at the same time, each its own ranges of bytes.
// Nothing here is collective: callers agree about errors (comm/communicator.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace espalier {

class RangedFile {
 public:
  RangedFile() = default;
  /// A new file, or an old one emptied, to write. What cannot be done to a file that is written is
  /// a UserError(kUsage) whose message is the reason alone, "No space left on device": its owner
  /// knows what the file is for.
  static RangedFile create(const std::string& path);
  /// One that another process has created, to write.
  static RangedFile join(const std::string& path);
  /// A new file of a folder, to write and to read, that has no name: it goes when it is closed,
  /// however the process ends. Errors as of create().
  static RangedFile unnamed(const std::string& folder);
  /// One to read. What cannot be done to it is a UserError(kInput) with path and reason.
  static RangedFile open(const std::string& path);

  RangedFile(RangedFile&& other) noexcept
      : file_(std::exchange(other.file_, -1)), path_(std::move(other.path_)) {}
  RangedFile& operator=(RangedFile&& other) noexcept {
    std::swap(file_, other.file_);
    std::swap(path_, other.path_);
    return *this;
  }
  ~RangedFile();

  std::int64_t size() const;
  /// Makes it so long; bytes that nobody writes are zero.
  void resize(std::int64_t size);
  void write(std::int64_t at, const void* from, std::int64_t count);
  /// How many bytes were read: fewer than `count` where the file ends.
  std::int64_t read(std::int64_t at, void* to, std::int64_t count) const;
  /// What was written is on the disk, not only in the system's memory: a node may die the moment
  /// after.
  void sync();
  /// The system need not keep the file in its memory: what is read next comes from the disk, where
  /// the system takes the advice. After sync().
  void forget() const;
  /// The system is told that these bytes are read soon, and may begin to bring them.
  void expect(std::int64_t at, std::int64_t count) const;
  /// For system calls of others (parallel_reads.hpp).
  int descriptor() const { return file_; }

 private:
  RangedFile(int file, std::string path) : file_(file), path_(std::move(path)) {}

  int file_ = -1;
  std::string path_;
};

/// All bytes of a file. Throws UserError(kInput) with path and reason.
std::string bytes_of_file(const std::string& path);

}  // namespace espalier
