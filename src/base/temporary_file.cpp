#include "espalier/base/temporary_file.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <cstring>

namespace espalier {

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

}  // namespace espalier
