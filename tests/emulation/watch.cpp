#include "watch.hpp"

#if defined(ESPALIER_WATCH_RACES)

#include <link.h>

#include <cstdint>

extern "C" {
// For virtual machines: memory that is given out anew has no past, as with malloc.
void __tsan_java_init(unsigned long heap, unsigned long bytes);
void __tsan_java_alloc(unsigned long begin, unsigned long bytes);
void __tsan_java_free(unsigned long begin, unsigned long bytes);
void __tsan_java_release_store(unsigned long address);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);

// Libraries, and what the C++ compiler makes of host code, are not instrumented: what they do by
// memcpy is no sign of a race. A thread of a kernel needs a short history.
[[gnu::visibility("default")]] const char* __tsan_default_options() {
  return "ignore_interceptors_accesses=1:history_size=0:report_thread_leaks=0:report_signal_unsafe=0:"
         "report_mutex_bugs=0:handle_segv=0:handle_abort=0:die_after_fork=0";
}
}

namespace espalier_emulation::watch {

namespace {

thread_local void* host = nullptr;

std::uintptr_t number_of(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}
std::size_t in_words(std::size_t bytes) {
  return (bytes + 7) / 8 * 8;
}
void forget(std::uintptr_t begin, std::size_t bytes) {
  static const bool begun = (__tsan_java_init(8, (std::uintptr_t{1} << 47) - 16), true);
  static_cast<void>(begun);
  __tsan_java_free(begin, bytes);
  __tsan_java_alloc(begin, bytes);
}

// The program's thread_local variables are the __shared__ ones of kernels, and few others.
struct Variables {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
};
Variables of_blocks() {
  Variables found;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* opaque) {
        for (int k = 0; k < info->dlpi_phnum; ++k)
          if (info->dlpi_phdr[k].p_type == PT_TLS && info->dlpi_tls_data != nullptr)
            *static_cast<Variables*>(opaque) = {number_of(info->dlpi_tls_data) / 8 * 8,
                                                in_words(info->dlpi_phdr[k].p_memsz)};
        return 1;  // the program comes first
      },
      &found);
  return found;
}

struct PassedOver {
  PassedOver() {
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~PassedOver() {
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  }
};

}  // namespace

void Moment::release_alone() {
  forget(number_of(this), sizeof *this);
  release();
}

Strand::~Strand() {
  if (fiber_ != nullptr) __tsan_destroy_fiber(fiber_);
}
void Strand::enter(const char* name) {
  if (fiber_ == nullptr) {
    fiber_ = __tsan_create_fiber(0);
    __tsan_set_fiber_name(fiber_, name);
  }
  if (host == nullptr) host = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(fiber_, __tsan_switch_to_fiber_no_sync);
}
void Strand::leave() {
  __tsan_switch_to_fiber(host, __tsan_switch_to_fiber_no_sync);
}

void pass_over_host() {
  thread_local const PassedOver here;
}
void allocated(std::byte* begin, std::size_t, std::size_t with_gap) {
  forget(number_of(begin), with_gap);
}
void freed(std::byte*, std::size_t) {}
void shared_memory_begins_anew() {
  thread_local const Variables here = of_blocks();
  if (here.bytes > 0) forget(here.begin, here.bytes);
}

}  // namespace espalier_emulation::watch

#elif defined(ESPALIER_WATCH_MEMORY)

#include <sanitizer/asan_interface.h>

extern "C" {
// A test looks at how a process ends that touches device memory.
[[gnu::visibility("default")]] const char* __asan_default_options() {
  return "detect_leaks=0:handle_segv=0:handle_abort=0:allow_user_segv_handler=1";
}
}

namespace espalier_emulation::watch {

void opened(std::byte* begin, std::size_t bytes) {
  __asan_poison_memory_region(begin, bytes);
}
void allocated(std::byte* begin, std::size_t bytes, std::size_t with_gap) {
  __asan_poison_memory_region(begin, with_gap);
  __asan_unpoison_memory_region(begin, bytes);
}
void freed(std::byte* begin, std::size_t with_gap) {
  __asan_poison_memory_region(begin, with_gap);
}

}  // namespace espalier_emulation::watch

#endif
