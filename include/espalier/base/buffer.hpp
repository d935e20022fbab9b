// Buffer<T>: a std::vector that does not fill new elements, on cache-line boundaries, in huge pages
// when large. The large arrays (edges, features, activations) are always written right after they
// are sized, so zeroing them first would touch the memory twice.
//
// And workspace<>(): scratch memory that a thread keeps from call to call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

namespace espalier {

/// Memory for a Buffer, at a cache line; from kHugeBufferBytes on at a huge page, and the system is
/// asked for huge pages (random access to 4 KiB pages is a quarter slower); from kMappedBufferBytes
/// on in pages of its own (src/base/mapped_memory.hpp), smaller ones are of the C library's heap.
/// Throws std::bad_alloc.
void* allocate_buffer(std::size_t bytes);
void free_buffer(void* memory, std::size_t bytes) noexcept;
inline constexpr std::size_t kHugeBufferBytes = std::size_t{8} << 20,
                             kMappedBufferBytes = std::size_t{32} << 20;

/// How many times this process has allocated memory for Buffers. Two readings that agree show that
/// what ran between them worked in memory it had.
std::int64_t buffer_allocations();

/// From now on memory that was freed is kept instead of given back to the system, which would clear
/// and map it again for the next minibatch. To be called once, at the start of a program.
void keep_freed_memory();

/// Gives what is kept back to the system: where a stage frees much that what follows will not ask
/// for, as when a graph has been read.
void give_back_freed_memory();

template <class T>
struct UninitializedAllocator {
  using value_type = T;

  UninitializedAllocator() = default;
  template <class U>
  UninitializedAllocator(const UninitializedAllocator<U>&) {}

  T* allocate(std::size_t n) { return static_cast<T*>(allocate_buffer(n * sizeof(T))); }
  void deallocate(T* p, std::size_t n) { free_buffer(p, n * sizeof(T)); }

  template <class U, class... Args>
  void construct(U* p, Args&&... args) {
    if constexpr (sizeof...(Args) == 0)
      ::new (static_cast<void*>(p)) U;  // default-initialised: no fill for arithmetic types
    else
      ::new (static_cast<void*>(p)) U(std::forward<Args>(args)...);
  }
  template <class U>
  bool operator==(const UninitializedAllocator<U>&) const {
    return true;
  }
};

template <class T>
using Buffer = std::vector<T, UninitializedAllocator<T>>;

// Scratch memory that a thread keeps from call to call, so that training allocates nothing once the
// largest minibatch has passed.

/// `size` elements, not initialised, of the calling thread's memory for `Purpose`: a type that
/// names the use and nothing else. Valid until the thread asks for the same purpose and T again.
template <class Purpose, class T>
std::span<T> workspace(std::size_t size) {
  thread_local Buffer<T> kept;
  if (size > kept.capacity()) {
    kept.clear();  // no copy of what nobody reads
    kept.reserve(size + size / 8);
  }
  kept.resize(size);
  return kept;
}

}  // namespace espalier
