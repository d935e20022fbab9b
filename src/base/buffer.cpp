#include "espalier/base/buffer.hpp"

#include <malloc.h>
#include <sys/mman.h>

#include <atomic>

namespace espalier {

namespace {

constexpr std::size_t kCacheLine = 64, kHugePage = std::size_t{2} << 20;

std::atomic<std::int64_t> allocations = 0;

std::align_val_t alignment_of(std::size_t bytes) {
  return std::align_val_t{bytes >= kHugeBufferBytes ? kHugePage : kCacheLine};
}

}  // namespace

void* allocate_buffer(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* memory = ::operator new(bytes, alignment_of(bytes));
  // Whole huge pages only: the rest of the last one may belong to someone else. A refusal costs
  // speed alone.
  if (bytes >= kHugeBufferBytes) madvise(memory, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
  return memory;
}

void free_buffer(void* memory, std::size_t bytes) noexcept {
  ::operator delete(memory, alignment_of(bytes));
}

std::int64_t buffer_allocations() {
  return allocations.load(std::memory_order_relaxed);
}

void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int kMegabyte = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, 32 * kMegabyte);  // the largest that glibc takes
  mallopt(M_TRIM_THRESHOLD, 1024 * kMegabyte);
  mallopt(M_TOP_PAD, 16 * kMegabyte);
#endif
}

}  // namespace espalier
