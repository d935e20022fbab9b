#include "espalier/sample/minibatch.hpp"

#include <algorithm>

#include "each_entry.hpp"
#include "espalier/base/device_array.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/base/launch.hpp"
#include "espalier/sample/type_runs.hpp"
#include "window.hpp"

namespace espalier {

namespace {

constexpr int kRowLanes = 8;  // threads that share a row's edges
constexpr int kRowsOfBlock = kBlockThreads / kRowLanes;

// A block and what all its edges' hashes begin with.
struct HashedBlock {
  BlockView<Cuda> block;
  const std::int64_t* vertices;
  std::uint64_t of_layer;
};

__device__ std::uint64_t sum_of_row(const HashedBlock& of, std::int64_t row, int lane) {
  const auto of_row = absorb(of.of_layer, of.vertices[row]);
  const auto end = of.block.indptr[row + 1];
  std::uint64_t sum = 0;
  for (auto k = of.block.indptr[row] + lane; k < end; k += kRowLanes)
    sum += finish_edge(with_source(of_row, of.vertices[of.block.indices[k]],
                                   static_cast<std::uint64_t>(of.block.relation(k))),
                       __float_as_uint(of.block.values[k]));
  return sum;
}

// *digest += the hashes of all edges of blocks[blockIdx.y], modulo 2^64: the same in any order.
__global__ void __launch_bounds__(kBlockThreads)
    add_digests(const HashedBlock* blocks, std::uint64_t* digest) {
  const auto of = blocks[blockIdx.y];
  const int lane = static_cast<int>(threadIdx.x) % kRowLanes;
  const auto step = static_cast<std::int64_t>(gridDim.x) * kRowsOfBlock;
  std::uint64_t sum = 0;
  for (auto row = static_cast<std::int64_t>(blockIdx.x) * kRowsOfBlock + threadIdx.x / kRowLanes;
       row < of.block.rows; row += step)
    sum += sum_of_row(of, row, lane);
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(kAllLanes, sum, lanes);
  if (threadIdx.x % kWarp == 0 && sum != 0)
    atomicAdd(reinterpret_cast<unsigned long long*>(digest), static_cast<unsigned long long>(sum));
}

}  // namespace

std::uint64_t sample_digests(const Cuda& cuda, std::span<const MinibatchOn<Cuda>> minibatches,
                             std::int64_t first_layer) {
  constexpr std::int64_t kMostBlocks = 64, kMostAtOnce = 65535;
  Buffer<HashedBlock> all;
  std::int64_t most_rows = 0;
  for (const auto& minibatch : minibatches)
    for (std::size_t l = 0; l < minibatch.blocks.size(); ++l) {
      all.push_back({minibatch.blocks[l], minibatch.vertices.data(),
                     hash_of_layer(minibatch.number, first_layer + static_cast<std::int64_t>(l))});
      most_rows = std::max(most_rows, minibatch.blocks[l].rows);
    }
  const auto on_device = upload(cuda, all);
  DeviceArray<std::uint64_t> digest(1);
  fill_zero(cuda, digest);
  const auto columns = std::min<std::int64_t>((most_rows + kRowsOfBlock - 1) / kRowsOfBlock, kMostBlocks);
  for (std::int64_t first = 0; first < std::ssize(all); first += kMostAtOnce)
    launch(cuda, "sample_digests", add_digests,
           dim3(static_cast<unsigned>(columns),
                static_cast<unsigned>(std::min(kMostAtOnce, std::ssize(all) - first))),
           dim3(kBlockThreads), on_device.data() + first, digest.data());
  return download(cuda, digest)[0];
}

namespace {

// nvcc wants types that kernels capture outside of functions.
struct AscendingList {
  const std::int64_t* ids;
  std::int64_t size;
};

}  // namespace

std::vector<std::int64_t> count_below(const Cuda& cuda, std::span<const std::span<const std::int64_t>> lists,
                                      const SharedList<std::int64_t, Cuda>& ends) {
  std::vector<AscendingList> on_host;
  for (const auto& list : lists) on_host.push_back({list.data(), std::ssize(list)});
  DeviceArray<AscendingList> on_device;
  upload(cuda, std::span<const AscendingList>(on_host), on_device);
  const auto types = ends.size();
  DeviceArray<std::int64_t> counts(lists.size() * static_cast<std::size_t>(types));
  const auto* const from = on_device.data();
  const auto* const bounds = ends.data();
  auto* const to = counts.data();
  for_each(cuda, "count_below", std::ssize(counts), [=] __device__(std::int64_t at) {
    const auto list = from[at / types];
    to[at] = count_below(list.ids, list.size, bounds[at % types]);
  });
  const auto all = download(cuda, counts);
  return {all.begin(), all.end()};
}

DeviceArray<float> mean_values(const Cuda& cuda, const DeviceArray<std::int64_t>& row_offsets,
                               std::int64_t entries) {
  DeviceArray<float> values(entries);
  auto* const to = values.data();
  const auto* const offsets = row_offsets.data();
  for_each_entry(cuda, "mean_values", offsets, std::ssize(row_offsets) - 1, 0, entries,
                 [=] __device__(std::int64_t at, std::int64_t row) {
                   to[at] = mean_value(offsets[row + 1] - offsets[row]);
                 });
  return values;
}

}  // namespace espalier
