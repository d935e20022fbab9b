// Reads of a file, many of which are under way at once: a disk serves them together in little more
// time than one of them takes.
//
// By io_uring (io_uring(7)), where the program was built with liburing and the kernel grants a
// ring. Many do not: those of containers and of some distributions refuse it, old ones lack it.
// There, and with ESPALIER_NO_IO_URING=1 in the environment, by pread, one after another, while the
// system is told of the reads to come (posix_fadvise). Results and errors are the same by
// either: what a ring gives short, or not at all, pread is asked for. Why no threads: decision 039.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "espalier/base/ranged_file.hpp"

namespace espalier {

/// Of one thread; others have their own, of the same file or not. 3 KiB, and a ring: 10 KiB of the
/// kernel's, which the process keeps for the next one. Nothing is registered or locked in memory.
class ParallelReads {
 public:
  static constexpr std::int64_t kMostUnderWay = 64;

  /// `file` outlives it.
  explicit ParallelReads(const RangedFile& file);
  /// Waits for all that is under way: memory that is read to outlives this.
  ~ParallelReads();
  ParallelReads(const ParallelReads&) = delete;
  ParallelReads& operator=(const ParallelReads&) = delete;

  std::int64_t under_way() const { return begun_ - finished_; }

  /// Begins to read [at, at + count) of the file. Only while fewer than kMostUnderWay are
  /// under way.
  void begin(std::int64_t at, void* to, std::int64_t count);

  /// Waits for the oldest under way. Returns and throws as RangedFile::read(), and if it throws,
  /// that read is over, too.
  std::int64_t finish();

  /// How files are read here, and why not by io_uring: "by io_uring, up to 64 at once".
  static std::string in_words();

 private:
  class Ring;
  class Rings;
  struct Read {
    std::int64_t at, count;
    void* to;
    std::int64_t got;  // negative: an error
    bool done;
  };
  static Rings& rings();

  const RangedFile& file_;
  std::unique_ptr<Ring> ring_;  // null: none
  std::array<Read, kMostUnderWay> reads_ = {};
  std::int64_t begun_ = 0, finished_ = 0;
};

}  // namespace espalier
