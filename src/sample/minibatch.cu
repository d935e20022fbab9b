#include "espalier/sample/minibatch.hpp"

#include <algorithm>

#include "edge_hash.hpp"
#include "espalier/base/device_array.hpp"
#include "espalier/base/launch.hpp"
#include "extract.hpp"

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
    sum += finish_edge(with_source(of_row, of.vertices[of.block.indices[k]]),
                       __float_as_uint(of.block.values[k]));
  return sum;
}

// *digest += the hashes of all edges of blocks[blockIdx.y]. Sums modulo 2^64 are the same in any order.
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

// What a copied minibatch keeps.
struct Copies {
  DeviceArray<std::int64_t> vertices;
  std::vector<Csr<std::int32_t, Cuda>> blocks;
};

}  // namespace

std::uint64_t sample_digests(const Cuda& cuda, std::span<const MinibatchOn<Cuda>> minibatches) {
  constexpr std::int64_t kMostBlocks = 64, kMostAtOnce = 65535;
  Buffer<HashedBlock> all;
  std::int64_t most_rows = 0;
  for (const auto& minibatch : minibatches)
    for (std::size_t l = 0; l < minibatch.blocks.size(); ++l) {
      all.push_back({minibatch.blocks[l], minibatch.vertices.data(),
                     hash_of_layer(minibatch.number, static_cast<std::int64_t>(l) + 1)});
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

MinibatchOn<Cuda> to_device(const Cuda& cuda, const Minibatch& minibatch) {
  auto memory = std::make_shared<Copies>();
  upload(cuda, minibatch.vertices, memory->vertices);
  for (const auto& block : minibatch.blocks) {
    auto& to = memory->blocks.emplace_back();
    to.rows = block.rows;
    to.columns = block.columns;
    const auto first = block.indptr[0];
    const auto entries = static_cast<std::size_t>(block.entries());
    Buffer<std::int64_t> indptr(block.indptr, block.indptr + block.rows + 1);
    for (auto& offset : indptr) offset -= first;
    to.indptr = upload(cuda, indptr);
    upload(cuda, std::span(block.indices + first, entries), to.indices);
    if (block.has_values()) upload(cuda, std::span(block.values + first, entries), to.values);
  }
  return {minibatch.number,
          {memory->vertices.data(), memory->vertices.size()},
          {memory->blocks.begin(), memory->blocks.end()},
          memory};
}

Minibatch to_host(const Cuda& cuda, const MinibatchOn<Cuda>& minibatch) {
  OwnedMinibatch copy;
  copy.number = minibatch.number;
  copy.vertices = download(cuda, minibatch.vertices.data(), minibatch.vertices.size());
  for (const auto& block : minibatch.blocks) {
    auto& to = copy.blocks.emplace_back();
    to.rows = block.rows;
    to.columns = block.columns;
    to.indptr = download(cuda, block.indptr, static_cast<std::size_t>(block.rows) + 1);
    const auto first = to.indptr[0];
    for (auto& offset : to.indptr) offset -= first;
    const auto entries = static_cast<std::size_t>(block.entries());
    to.indices = download(cuda, block.indices + first, entries);
    if (block.has_values()) to.values = download(cuda, block.values + first, entries);
  }
  return finish_minibatch(std::move(copy));
}

}  // namespace espalier
