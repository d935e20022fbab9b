// Prefix sums, sorts and reductions against the standard library's; kernels that wait for
// each other.
// ranks: 1
#include "espalier/base/device_algorithms.hpp"

#include <numeric>
#include <random>

#include "cuda_test.hpp"
#include "espalier/base/launch.hpp"
#include "user_error.hpp"

namespace espalier {
namespace {

class DeviceAlgorithms : public CudaTest {};

template <class T>
Buffer<T> random_numbers(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Buffer<T> numbers(count);
  for (auto& number : numbers) number = static_cast<T>(random() % 1000);
  return numbers;
}

TEST_F(DeviceAlgorithms, ExclusiveSumEndsWithTheTotal) {
  for (const std::size_t count : {0u, 1u, 2u, 31u, 257u, 5000u}) {
    const auto numbers = random_numbers<std::int64_t>(count, count);
    const auto in = upload(gpu(), numbers);
    DeviceArray<std::int64_t> out(count + 1);
    exclusive_sum(gpu(), in.data(), out.data(), static_cast<std::int64_t>(count));
    const auto sums = download(gpu(), out);
    std::int64_t sum = 0;
    for (std::size_t k = 0; k <= count; ++k) {
      EXPECT_EQ(sums[k], sum) << k;
      if (k < count) sum += numbers[k];
    }
  }
}

TEST_F(DeviceAlgorithms, UnsignedSumsWrap) {
  const auto in = upload(gpu(), Buffer<std::uint64_t>{~std::uint64_t{0}, 5, 7});
  DeviceArray<std::uint64_t> out(4);
  exclusive_sum(gpu(), in.data(), out.data(), 3);
  EXPECT_EQ(download(gpu(), out), (Buffer<std::uint64_t>{0, ~std::uint64_t{0}, 4, 11}));
}

TEST_F(DeviceAlgorithms, SortIsStableAndLooksAtItsBitsOnly) {
  const auto keys = random_numbers<std::uint32_t>(3000, 7);
  Buffer<std::int32_t> places(keys.size());
  std::iota(places.begin(), places.end(), 0);
  const auto device_keys = upload(gpu(), keys);
  const auto device_places = upload(gpu(), places);
  DeviceArray<std::uint32_t> sorted(keys.size());
  DeviceArray<std::int32_t> sorted_places(keys.size());
  sort_pairs(gpu(), device_keys.data(), sorted.data(), device_places.data(), sorted_places.data(),
             std::ssize(keys), 6);
  std::stable_sort(places.begin(), places.end(), [&](std::int32_t x, std::int32_t y) {
    return keys[static_cast<std::size_t>(x)] % 64 < keys[static_cast<std::size_t>(y)] % 64;
  });
  EXPECT_EQ(download(gpu(), sorted_places), places);
}

TEST_F(DeviceAlgorithms, ReducesToTheSum) {
  const auto numbers = random_numbers<std::int64_t>(1001, 3);
  const auto in = upload(gpu(), numbers);
  DeviceArray<std::int64_t> sum(1);
  reduce_sum(gpu(), in.data(), std::ssize(numbers), sum.data());
  EXPECT_EQ(download(gpu(), sum)[0], std::accumulate(numbers.begin(), numbers.end(), std::int64_t{0}));
}

// Each block turns its numbers around through shared memory, each warp adds its own up.
__global__ void reverse_and_add(const int* in, int* reversed, int* warp_sums) {
  __shared__ int kept[128];
  const int t = static_cast<int>(threadIdx.x), at = static_cast<int>(blockIdx.x) * 128 + t;
  kept[t] = in[at];
  __syncthreads();
  reversed[at] = kept[127 - t];
  int sum = in[at];
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(kAllLanes, sum, lanes);
  if (t % 32 == 0) warp_sums[at / 32] = sum;
}

TEST_F(DeviceAlgorithms, ThreadsOfABlockMeetAtBarriers) {
  Buffer<int> numbers(5 * 128);
  std::iota(numbers.begin(), numbers.end(), 0);
  const auto in = upload(gpu(), numbers);
  DeviceArray<int> reversed(numbers.size()), sums(numbers.size() / 32);
  launch(gpu(), "reverse_and_add", reverse_and_add, dim3(5), dim3(128), in.data(), reversed.data(),
         sums.data());
  const auto back = download(gpu(), reversed), of_warps = download(gpu(), sums);
  for (int k = 0; k < 5 * 128; ++k)
    EXPECT_EQ(back[static_cast<std::size_t>(k)], k / 128 * 128 + 127 - k % 128);
  for (int w = 0; w < 20; ++w) EXPECT_EQ(of_warps[static_cast<std::size_t>(w)], 32 * (32 * w) + 31 * 16);
}

// A __device__ lambda may not stand in a private member function, which a test's body is.
void count_visits(const Cuda& gpu, int* visits, std::int64_t items) {
  for_each(gpu, "count_visits", items, [=] __device__(std::int64_t i) { atomicAdd(visits + i, 1); });
}
void copy_by_kernel(const Cuda& gpu, const int* from, int* to, std::int64_t items) {
  for_each(gpu, "copy_by_kernel", items, [=] __device__(std::int64_t i) { to[i] = from[i]; });
}

TEST_F(DeviceAlgorithms, ForEachVisitsEveryItemOnce) {
  DeviceArray<int> visits(1000);
  fill_zero(gpu(), visits);
  count_visits(gpu(), visits.data(), 1000);
  EXPECT_EQ(download(gpu(), visits), Buffer<int>(1000, 1));
}

TEST_F(DeviceAlgorithms, PinnedHostMemoryIsReadByKernels) {
  const auto in = upload(gpu(), Buffer<int>{3, 1, 4}, Placement::kHost);
  DeviceArray<int> out(3);
  copy_by_kernel(gpu(), in.data(), out.data(), 3);
  EXPECT_EQ(download(gpu(), out), (Buffer<int>{3, 1, 4}));
}

TEST_F(DeviceAlgorithms, AFullGpuNamesWhatWasAskedAndTheKeys) {
  gpu();  // is taken, also where this test runs alone
  const DevicePurpose purpose("a window of minibatches");
  expect_refused(ExitCode::kMemory,
                 {"32768.000 GiB", "a window of minibatches", "sampler.bulk", "graph.features_on"},
                 [] { DeviceArray<std::byte> too_much(std::size_t{1} << 45); });
}

}  // namespace
}  // namespace espalier
