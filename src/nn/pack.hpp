// Neighbouring floats that a thread reads and writes at once. For .cu files only.
#pragma once

#include <cstdint>

namespace espalier {

/// An address that is a multiple of its size holds it.
template <int kCount>
struct alignas(kCount * sizeof(float)) Pack {
  float at[kCount];
};

template <int kCount>
__device__ inline Pack<kCount> load_pack(const float* from) {
  return *reinterpret_cast<const Pack<kCount>*>(from);
}
template <int kCount>
__device__ inline void store_pack(float* to, const Pack<kCount>& pack) {
  *reinterpret_cast<Pack<kCount>*>(to) = pack;
}

/// May packs of four be read from here?
inline bool holds_packs(const float* data) {
  return reinterpret_cast<std::uintptr_t>(data) % sizeof(Pack<4>) == 0;
}

}  // namespace espalier
