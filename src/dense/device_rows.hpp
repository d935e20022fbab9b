// Rows of matrices in the memory of a GPU, read a pack of elements at a time: up to 16 bytes by one
// instruction where the width and the addresses allow it. For .cu files only.
#pragma once

#include <cstdint>

#include "espalier/base/half.hpp"
#include "espalier/base/launch.hpp"

namespace espalier::device_rows {

template <class S, int N>
struct alignas(sizeof(S) * N) Pack {
  S element[N];
};

/// The pack whose first element is at[0].
template <int N, class S>
__device__ inline Pack<S, N> load(const S* at) {
  return *reinterpret_cast<const Pack<S, N>*>(at);
}
template <int N, class S>
__device__ inline void store(S* at, const Pack<S, N>& pack) {
  *reinterpret_cast<Pack<S, N>*>(at) = pack;
}

inline bool aligned(const void* address, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(address) % bytes == 0;
}

}  // namespace espalier::device_rows
