// The part of CUB that Espalier uses, by the standard library.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "cuda_runtime.h"

namespace cub {

namespace detail {
inline bool asks_for_size(void* scratch, std::size_t& bytes) {
  if (scratch == nullptr) bytes = 1;
  return scratch == nullptr;
}
template <class T>
void note_reads(cudaStream_t stream, const T* begin, std::int64_t count) {
  espalier_emulation::note_read(stream, begin, static_cast<std::size_t>(count) * sizeof(T));
}
template <class T>
void note_writes(cudaStream_t stream, T* begin, std::int64_t count) {
  espalier_emulation::note_write(stream, begin, static_cast<std::size_t>(count) * sizeof(T));
}
template <class Key>
Key low_bits(Key key, int begin, int end) {
  key = static_cast<Key>(key >> begin);
  return end - begin < static_cast<int>(8 * sizeof(Key))
             ? static_cast<Key>(key & ((Key{1} << (end - begin)) - 1))
             : key;
}
}  // namespace detail

struct DeviceScan {
  template <class In, class Out, class N>
  static cudaError_t InclusiveSum(void* scratch, std::size_t& bytes, In in, Out out, N count,
                                  cudaStream_t stream = nullptr) {
    if (detail::asks_for_size(scratch, bytes)) return cudaSuccess;
    const espalier_emulation::DeviceAccess access;
    std::inclusive_scan(in, in + count, out);
    detail::note_reads(stream, in, count);
    detail::note_writes(stream, out, count);
    return cudaSuccess;
  }
};

struct DeviceReduce {
  template <class In, class Out, class N>
  static cudaError_t Sum(void* scratch, std::size_t& bytes, In in, Out out, N count,
                         cudaStream_t stream = nullptr) {
    if (detail::asks_for_size(scratch, bytes)) return cudaSuccess;
    const espalier_emulation::DeviceAccess access;
    detail::note_reads(stream, in, count);
    detail::note_writes(stream, out, 1);
    *out = std::accumulate(in, in + count, std::remove_reference_t<decltype(*out)>{});
    return cudaSuccess;
  }
};

struct DeviceRadixSort {
  template <class Key, class Value, class N>
  static cudaError_t SortPairs(void* scratch, std::size_t& bytes, const Key* keys, Key* sorted_keys,
                               const Value* values, Value* sorted_values, N count, int begin, int end,
                               cudaStream_t stream = nullptr) {
    if (detail::asks_for_size(scratch, bytes)) return cudaSuccess;
    const espalier_emulation::DeviceAccess access;
    std::vector<N> order(static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), N{0});
    std::stable_sort(order.begin(), order.end(), [&](N x, N y) {
      return detail::low_bits(keys[x], begin, end) < detail::low_bits(keys[y], begin, end);
    });
    detail::note_reads(stream, keys, count);
    detail::note_reads(stream, values, count);
    detail::note_writes(stream, sorted_keys, count);
    detail::note_writes(stream, sorted_values, count);
    for (N k = 0; k < count; ++k) {
      sorted_keys[k] = keys[order[static_cast<std::size_t>(k)]];
      sorted_values[k] = values[order[static_cast<std::size_t>(k)]];
    }
    return cudaSuccess;
  }
};

}  // namespace cub
