// A file under way beside its place: PATH.partial-PID. A process that is killed leaves it; the next
// one that writes to PATH removes it, when nobody writes it any more.
#pragma once

#include <string>

namespace espalier {

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

}  // namespace espalier
