// What a sanitizer is told while kernels run: who works, a thread of a kernel or a stream; who has
// waited for whom; which memory is an array. Empty in build/emulated, which nothing watches.
//
// build/races (make race-check): kernels under ThreadSanitizer. A strand is work with an order of
// its own: a thread of a block, a stream. Code runs as the strand that was entered last, and what
// two strands do has an order only where one acquired what the other released.
//
// build/memory (make memory-check): kernels under AddressSanitizer. Device memory that is no array
// is poisoned.
//
// Only files with kernels are compiled for the sanitizer: host code is passed over.
#pragma once

#include <cstddef>

#if defined(ESPALIER_WATCH_RACES)
#include <sanitizer/tsan_interface.h>
extern "C" {
void __tsan_read_range(void* begin, unsigned long bytes);
void __tsan_write_range(void* begin, unsigned long bytes);
}
#endif

namespace espalier_emulation::watch {

#if defined(ESPALIER_WATCH_RACES)

inline constexpr bool kRaces = true;

/// What was done before a release comes before what is done after an acquire of the same.
class Moment {
 public:
  void acquire() { __tsan_acquire(this); }
  /// Beside those that others released before, or in their place.
  void release() { __tsan_release(this); }
  void release_alone();

 private:
  std::size_t address_ = 0;
};

class Strand {
 public:
  Strand() = default;
  ~Strand();
  Strand(const Strand&) = delete;
  /// What follows is done by it, until leave().
  void enter(const char* name);
  static void leave();

 private:
  void* fiber_ = nullptr;  // made when it first works, which takes 0.8 ms
};

/// Of the host's thread that calls: what it reads and writes is not looked at.
void pass_over_host();
/// An array, and the gap behind it: what was there before is forgotten.
void allocated(std::byte* begin, std::size_t bytes, std::size_t with_gap);
void freed(std::byte* begin, std::size_t with_gap);
inline void opened(std::byte*, std::size_t) {}
inline void reads(const void* begin, std::size_t bytes) {
  __tsan_read_range(const_cast<void*>(begin), bytes);
}
inline void writes(void* begin, std::size_t bytes) {
  __tsan_write_range(begin, bytes);
}
/// A block begins: who used these variables before is forgotten.
void shared_memory_begins_anew();

#else

inline constexpr bool kRaces = false;

class Moment {
 public:
  void acquire() {}
  void release() {}
  void release_alone() {}
};
class Strand {
 public:
  void enter(const char*) {}
  static void leave() {}
};
inline void pass_over_host() {}
inline void reads(const void*, std::size_t) {}
inline void writes(void*, std::size_t) {}
inline void shared_memory_begins_anew() {}

#if defined(ESPALIER_WATCH_MEMORY)
void opened(std::byte* begin, std::size_t bytes);
void allocated(std::byte* begin, std::size_t bytes, std::size_t with_gap);
void freed(std::byte* begin, std::size_t with_gap);
#else
inline void opened(std::byte*, std::size_t) {}
inline void allocated(std::byte*, std::size_t, std::size_t) {}
inline void freed(std::byte*, std::size_t) {}
#endif

#endif

}  // namespace espalier_emulation::watch
