// Files that must not outlive a process that ends before its time: a graph file half written beside
// its place, the `.tmp` of a report, the `.partial` of a checkpoint. Whatever ends the process in
// an orderly way or by a signal that can be caught (base/signals.hpp, end_job in base/error.cpp)
// removes them first; only SIGKILL and a crash leave them.
//
//     const TemporaryFile temporary(path + ".tmp");
//     ... write it, rename it
#pragma once

#include <string>

namespace espalier {

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

}  // namespace espalier
