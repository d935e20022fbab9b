// Prefix sums, sorts and reductions. Those of device arrays are CUB's, behind signatures that need
// no CUDA header. All are asynchronous; sums of integers wrap modulo 2^64 (2^32) and are exact in
// any order.
#pragma once

#include <cstdint>

#include "espalier/base/device_array.hpp"

namespace espalier {

/// out[k] = in[0] + .. + in[k-1] for k <= count: out has count + 1 elements, the last is the total,
/// and does not overlap `in`. T: int32_t, int64_t, uint64_t.
template <class T>
void exclusive_sum(const Cuda& cuda, const T* in, T* out, std::int64_t count);
template <class T>
void exclusive_sum(const Cpu&, const T* in, T* out, std::int64_t count) {
  out[0] = 0;
  for (std::int64_t k = 0; k < count; ++k) out[k + 1] = out[k] + in[k];
}

/// sorted = keys ascending (stable), `values` alongside. Bits [0, bits) of the keys decide. Key:
/// uint32_t, uint64_t. sorted_keys and sorted_values must not overlap keys and values.
template <class Key, class Value>
void sort_pairs(const Cuda& cuda, const Key* keys, Key* sorted_keys, const Value* values,
                Value* sorted_values, std::int64_t count, int bits);

/// *result = the sum of `count` > 0 elements, all on the device.
template <class T>
void reduce_sum(const Cuda& cuda, const T* in, std::int64_t count, T* result);

}  // namespace espalier
