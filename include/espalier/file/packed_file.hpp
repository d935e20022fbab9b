// The bytes of a file from the first to the last, as they are or unpacked: gzip and zstd are told
// by the first bytes, whatever the name says. Memory for a piece, and for zstd its window (8 MiB by
// default, 128 MiB at most).
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

namespace espalier {

/// What is packed is damaged or cut off; the message is the reason alone, as the reader knows the
/// place.
class DamagedPacking : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class PackedFile {
 public:
  /// Throws UserError(kInput) when there is no such file, or a pipe, a device or a folder has its
  /// name.
  explicit PackedFile(const std::string& path);
  /// One that is not packed, from this byte on.
  PackedFile(const std::string& path, std::int64_t begin);
  ~PackedFile();
  PackedFile(const PackedFile&) = delete;
  PackedFile& operator=(const PackedFile&) = delete;

  /// How many bytes a file has that is not packed; -1 of one that is. Throws as above.
  static std::int64_t plain_size(const std::string& path);

  /// How many bytes were read: at most `count`, 0 at the end only. Throws DamagedPacking.
  std::int64_t read(char* to, std::int64_t count);

  /// Unpacks what a file has in it.
  class Unpacker {
   public:
    virtual ~Unpacker() = default;
    virtual std::int64_t read(char* to, std::int64_t count) = 0;
  };

 private:
  std::unique_ptr<Unpacker> bytes_;
};

}  // namespace espalier
