// Buffer<T>: a std::vector that does not fill new elements, on cache-line boundaries.
// The large arrays (edges, features, activations) are always written right after they are sized, so
// zeroing them first would touch the memory twice.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace espalier {

template <class T>
struct UninitializedAllocator {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{64};

  UninitializedAllocator() = default;
  template <class U>
  UninitializedAllocator(const UninitializedAllocator<U>&) {}

  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kAlignment)); }
  void deallocate(T* p, std::size_t) { ::operator delete(p, kAlignment); }

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

}  // namespace espalier
