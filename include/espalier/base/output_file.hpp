// A file that a command writes. What stands in its place is not lost by accident: a file that
// exists is replaced only when that is asked for, and what is not a file never; asked before the
// work, and once more when the finished file takes its place.
#pragma once

#include <string>
#include <utility>

namespace espalier {

struct OutputFile {
  /// Not explicit: a path alone is a file that must not exist.
  OutputFile(std::string where, bool replace = false) : path(std::move(where)), overwrite(replace) {}

  std::string path;
  bool overwrite;  ///< may a file that has this name be replaced?
};

/// "device", "pipe", "socket" or "folder" where something other than a file has this name (through
/// links), else empty: there is a file, or nothing.
std::string other_than_file(const std::string& path);

/// Throws UserError(kUsage) when `path` is a device, a pipe or a socket.
void check_is_file(const std::string& path);

/// Can `output` be written? Throws UserError(kUsage) when it is a folder, a device, a pipe or a
/// socket, exists and may not be replaced, or its folder is not there or takes no file.
void check_output(const OutputFile& output);

/// Gives the finished file `temporary`, which lies beside it, the name of `output`. Throws
/// UserError(kUsage) when a file that may not be replaced has appeared there meanwhile; the
/// finished one then stays, and the message names it; or when the system refuses: `temporary` is
/// still there then.
void put_in_place(const std::string& temporary, const OutputFile& output);

}  // namespace espalier
