// Files that are written, whole or not at all: what a command puts at its place; the file under way
// beside it; results on disks that may be full; files that go with the process; those that a
// command makes again.
//
// A file that a command writes. What stands in its place is not lost by accident: a file that
// exists is replaced only when that is asked for, and what is not a file never; asked before the
// work, and once more when the finished file takes its place.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
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

// Files that must not outlive a process that ends before its time: a graph file half written beside
// its place, the `.tmp` of a report, the `.partial` of a checkpoint. Whatever ends the process in
// an orderly way or by a signal that can be caught (base/signals.hpp, end_job in
// base/final_message.cpp) removes them first; only SIGKILL and a crash leave them.
//
//     const TemporaryFile temporary(path + ".tmp");
//     ... write it, rename it

class TemporaryFile {
 public:
  /// From here on the file of this name goes with the process. It need not be there yet, and
  /// several ranks may register the same one: whichever a signal reaches removes it. Only files
  /// that this job makes, by names of its own.
  explicit TemporaryFile(const std::string& path);
  /// Forgets it, and leaves the file as it is: it was renamed, or whoever wrote it has removed it.
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

 private:
  int place_;  ///< in the list, -1 where it is full or the path too long: then the file is
               ///< not watched
};

/// Removes them all. A signal handler may call it.
void remove_temporary_files();

// A file under way beside its place: PATH.partial-PID. A process that is killed leaves it; the next
// one that writes to PATH removes it, when nobody writes it any more.

class PartialFile {
 public:
  /// Removes what processes that are gone have left beside `path`: files of local file systems,
  /// which no process of this host has the number of and no system's lock is on. Elsewhere a
  /// process of another host may write, so they stay.
  explicit PartialFile(const std::string& path);
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  const std::string& name() const { return name_; }
  /// The file is there: from here on a lock says that somebody writes it, where there are locks.
  void hold();

 private:
  std::string name_;
  int lock_ = -1;
};

// Files of results, on disks that may be full: they are whole or not there, and who writes is told
// why not and may try again.

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

// Files that a command makes again in seconds and from nothing but its inputs, `plan -o` and
// `calibrate -o`: they replace one of their own kind without being asked to, and nothing else.

/// Throws UserError(kUsage) when there is something at `path` that is not empty and not of this
/// kind: `is_one` is given the text of a file. An empty `path` is no file, and fine. `kind`: as
/// "plan".
void check_replaceable(const std::string& path, const char* kind,
                       const std::function<bool(const std::string& text)>& is_one);

}  // namespace espalier
