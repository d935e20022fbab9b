#include "espalier/base/device_algorithms.hpp"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>

#include "espalier/base/error.hpp"
#include "espalier/base/launch.hpp"

namespace espalier {

namespace {

// Do CUB's algorithms count in 64 bits? Before CUDA 12.8 some took an `int`, and would silently do
// a part of a longer array.
template <class Count>
constexpr bool kCountsBy = requires(std::size_t& bytes, const Count* in, Count* out, Count count) {
  cub::DeviceScan::InclusiveSum<const Count*, Count*, Count>(nullptr, bytes, in, out, count, nullptr);
  cub::DeviceReduce::Sum<const Count*, Count*, Count>(nullptr, bytes, in, out, count, nullptr);
  cub::DeviceRadixSort::SortPairs<Count, Count, Count>(nullptr, bytes, in, out, in, out, count, 0, 1,
                                                       nullptr);
};

// CUB's two calls: how much scratch memory, then the work in it. The scratch goes back to the pool
// in stream order.
template <class Call>
void with_scratch(const Cuda& cuda, const char* name, std::int64_t count, const Call& call) {
  ESPALIER_CHECK(kCountsBy<std::int64_t> || count < std::int64_t{1} << 31,
                 "{}: {} items; a program built with CUDA 12.8 or later counts so many", name, count);
  std::size_t bytes = 0;
  check_cuda(static_cast<int>(call(nullptr, bytes)), name, __FILE__, __LINE__);
  DeviceArray<std::byte> scratch(std::max<std::size_t>(bytes, 1));
  const ProfilerRange range(name);
  check_cuda(static_cast<int>(call(scratch.data(), bytes)), name, __FILE__, __LINE__);
  cuda.launched(name);
}

}  // namespace

template <class T>
void exclusive_sum(const Cuda& cuda, const T* in, T* out, std::int64_t count) {
  if (count == 0) return fill_bytes(cuda, out, 0, sizeof(T));
  // Inclusive sums that begin one place later: an exclusive sum of count + 1 elements would read
  // one that is not there.
  with_scratch(cuda, "exclusive_sum", count, [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceScan::InclusiveSum(scratch, bytes, in, out + 1, count, cuda.stream());
  });
  fill_bytes(cuda, out, 0, sizeof(T));
}

template <class Key, class Value>
void sort_pairs(const Cuda& cuda, const Key* keys, Key* sorted_keys, const Value* values,
                Value* sorted_values, std::int64_t count, int bits) {
  if (count == 0) return;
  with_scratch(cuda, "sort_pairs", count, [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(scratch, bytes, keys, sorted_keys, values, sorted_values, count, 0,
                                           bits, cuda.stream());
  });
}

template <class T>
void reduce_sum(const Cuda& cuda, const T* in, std::int64_t count, T* result) {
  with_scratch(cuda, "reduce_sum", count, [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceReduce::Sum(scratch, bytes, in, result, count, cuda.stream());
  });
}

#define ESPALIER_INSTANTIATE(T)                                         \
  template void exclusive_sum(const Cuda&, const T*, T*, std::int64_t); \
  template void reduce_sum(const Cuda&, const T*, std::int64_t, T*);
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
ESPALIER_INSTANTIATE(std::uint64_t)
#undef ESPALIER_INSTANTIATE

#define ESPALIER_INSTANTIATE(Key)                                                                           \
  template void sort_pairs(const Cuda&, const Key*, Key*, const std::int32_t*, std::int32_t*, std::int64_t, \
                           int);                                                                            \
  template void sort_pairs(const Cuda&, const Key*, Key*, const std::int64_t*, std::int64_t*, std::int64_t, \
                           int);
ESPALIER_INSTANTIATE(std::uint32_t)
ESPALIER_INSTANTIATE(std::uint64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
