// Files of results, on disks that may be full: they are whole or not there, and who writes is told
// why not and may try again.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace espalier {

/// Writes `text` to `path` so that a reader sees the old file or the new one, never a part. A
/// symbolic link is followed; a device or a pipe is written into. Returns why it failed, in the
/// words of the system; empty when it did not.
std::string replace_file(const std::string& path, std::string_view text);

/// A text file that grows by whole lines. What it could not take is kept and tried again; a reader
/// never sees a torn line but while one is taken back. Somebody may cut or remove the file: then it
/// is written anew.
class GrowingFile {
 public:
  explicit GrowingFile(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }

  /// Adds `lines`, newlines included, to what the file shall hold.
  void add(std::string_view lines) { text_ += lines; }

  /// Brings all of it into the file. Returns why it failed; empty when it did not.
  std::string write();

 private:
  std::string write_to(int file);
  std::string path_, text_;
  std::size_t written_ = 0;  ///< bytes of text_ that the file has for certain
};

}  // namespace espalier
