#include "espalier/base/buffer.hpp"

#include <malloc.h>
#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include "mapped_memory.hpp"

namespace espalier {

namespace {

constexpr std::size_t kCacheLine = 64;

std::atomic<std::int64_t> allocations = 0;

std::size_t alignment_of(std::size_t bytes) {
  return bytes >= kHugeBufferBytes ? kHugePage : kCacheLine;
}

// Never destroyed: Buffers of threads and of static objects may be freed after it would be.
MappedMemory& mapped_memory() {
  static auto* const memory = new MappedMemory;
  return *memory;
}

bool is_mapped([[maybe_unused]] std::size_t bytes) {
#ifdef __SANITIZE_ADDRESS__
  return false;  // it watches what operator new gives
#else
  return bytes >= kMappedBufferBytes;
#endif
}

}  // namespace

// A place more than asked for, with the address of the whole before what is used of it. Asked for
// aligned memory, the C library before glibc 2.38 finds none in what was freed of just that size,
// and takes more from the system each time.
void* allocate_buffer(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  while (is_mapped(bytes)) {
    if (void* const memory = mapped_memory().allocate(bytes)) return memory;
    const auto handler = std::get_new_handler();  // as operator new does
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
  const auto alignment = alignment_of(bytes);
  auto* const whole = static_cast<std::byte*>(::operator new(bytes + alignment, std::nothrow));
  if (whole == nullptr) throw std::bad_alloc();
  const auto begin = reinterpret_cast<std::uintptr_t>(whole) + sizeof(void*);
  auto* const memory = whole + sizeof(void*) + (alignment - begin % alignment) % alignment;
  std::memcpy(memory - sizeof(void*), &whole, sizeof(void*));
  // Whole huge pages only: the rest of the last one may belong to someone else. A refusal costs
  // speed alone.
  if (bytes >= kHugeBufferBytes) madvise(memory, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
  return memory;
}

void free_buffer(void* memory, std::size_t bytes) noexcept {
  if (is_mapped(bytes)) return mapped_memory().free(memory, bytes);
  void* whole = nullptr;
  std::memcpy(&whole, static_cast<std::byte*>(memory) - sizeof(void*), sizeof(void*));
  ::operator delete(whole);
}

std::int64_t buffer_allocations() {
  return allocations.load(std::memory_order_relaxed);
}

void keep_freed_memory() {
  mapped_memory().keep(true);
#ifdef __GLIBC__
  constexpr int kMegabyte = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, 32 * kMegabyte);  // the largest that glibc takes
  mallopt(M_TRIM_THRESHOLD, 1024 * kMegabyte);
  mallopt(M_TOP_PAD, 16 * kMegabyte);
#endif
}

void give_back_freed_memory() {
  mapped_memory().give_back();
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace espalier
