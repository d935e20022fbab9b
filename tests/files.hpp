// Files in tests: their bytes, and disks that are full.
#pragma once

#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <sstream>
#include <string>

#include "mpi_test.hpp"

namespace espalier {

inline std::string read_file(const std::string& path) {
  std::ostringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  return content.str();
}

inline void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// Collective. Rank 0 writes what all find afterwards; who still reads the file before is
/// waited for.
inline void write_for_all(const std::string& path, const std::string& bytes) {
  test_world().barrier();
  if (test_world().rank() == 0) write_file(path, bytes);
  test_world().barrier();
}

/// While it lives no file grows beyond so many bytes: a write fails as on a full disk, some bytes
/// of it written, then no more.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_ = {};
};

}  // namespace espalier
