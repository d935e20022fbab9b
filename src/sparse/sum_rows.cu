// Sums of rows: a warp for each piece of a row adds its entries to the dense array of their list, then a warp for each
// tile of kTileColumns columns counts and writes the columns with a positive sum.
#include "espalier/sparse/sum_rows.hpp"

#include "espalier/base/device_algorithms.hpp"
#include "espalier/base/launch.hpp"

namespace espalier {

namespace {

constexpr std::int64_t kTileColumns = 1024, kWarps = kBlockThreads / kWarp;

// Which warp of the grid this is.
__device__ std::int64_t warp_number() {
  return static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
}

// dense: [lists][stride], of the lists from `first`.
template <class Index>
__global__ void __launch_bounds__(kBlockThreads)
    add_pieces(const RowPiece* pieces, std::int64_t count, const Index* indices, const float* values,
               EntryWeight weight, std::int64_t first, std::int64_t stride, std::uint64_t* dense) {
  const auto number = warp_number();
  if (number >= count) return;
  const auto piece = pieces[number];
  auto* const sums = reinterpret_cast<unsigned long long*>(dense) + (piece.group - first) * stride;
#pragma unroll 4
  for (auto k = static_cast<int>(threadIdx.x % kWarp); k < piece.size; k += kWarp) {
    const auto column = indices[piece.begin + k];
    const auto counts = weight(values == nullptr ? nullptr : values + piece.begin + k);
    if (counts > 0) atomicAdd(sums + column, static_cast<unsigned long long>(counts));
  }
}

__global__ void __launch_bounds__(kBlockThreads)
    count_positive(const std::uint64_t* dense, std::int64_t tiles, std::int64_t* positive) {
  const auto tile = warp_number();
  if (tile >= tiles) return;
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  int count = 0;
#pragma unroll 8
  for (int k = 0; k < kTileColumns; k += kWarp) count += dense[tile * kTileColumns + k + lane] > 0;
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) count += __shfl_xor_sync(kAllLanes, count, lanes);
  if (lane == 0) positive[tile] = count;
}

// Tile t writes its columns to places[t] .. places[t + 1].
template <class Index>
__global__ void __launch_bounds__(kBlockThreads)
    write_positive(const std::uint64_t* dense, std::int64_t tiles, std::int64_t tiles_per_list,
                   const std::int64_t* places, Index* columns, std::uint64_t* sums) {
  const auto tile = warp_number();
  if (tile >= tiles || places[tile] == places[tile + 1]) return;
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const auto column = tile % tiles_per_list * kTileColumns + lane;
  auto place = places[tile];
#pragma unroll 4
  for (int k = 0; k < kTileColumns; k += kWarp) {
    const auto sum = dense[tile * kTileColumns + k + lane];
    const auto positive = __ballot_sync(kAllLanes, sum > 0);
    if (sum > 0) {
      const auto at = place + __popc(positive & ((1u << lane) - 1));
      columns[at] = static_cast<Index>(column + k);
      sums[at] = sum;
    }
    place += __popc(positive);
  }
}

// out[g] = places[g * tiles_per_list] for g <= lists.
void take_list_offsets(const Cuda& cuda, const std::int64_t* places, std::int64_t tiles_per_list,
                       std::int64_t lists, std::int64_t* out) {
  for_each(cuda, "take_list_offsets", lists + 1,
           [=] __device__(std::int64_t g) { out[g] = places[g * tiles_per_list]; });
}

}  // namespace

template <class Index>
void sum_rows(const Cuda& cuda, const Csr<Index, Cuda>& matrix, const RowPieces& pieces, std::int64_t first,
              std::int64_t last, const EntryWeight& weight, DeviceSums<Index>& out) {
  const DevicePurpose purpose("the sums of the frontiers' rows");
  const auto lists = last - first, tiles_per_list = (matrix.columns + kTileColumns - 1) / kTileColumns,
             tiles = lists * tiles_per_list;
  DeviceArray<std::uint64_t> dense(static_cast<std::size_t>(tiles * kTileColumns));
  fill_zero(cuda, dense);
  const auto begin = pieces.of_group[static_cast<std::size_t>(first)],
             count = pieces.of_group[static_cast<std::size_t>(last)] - begin;
  launch(cuda, "add_pieces", add_pieces<Index>, dim3(blocks_for(count, kWarps)), dim3(kBlockThreads),
         pieces.pieces.data() + begin, count, matrix.indices.data(),
         matrix.has_values() ? matrix.values.data() : nullptr, weight, first, tiles_per_list * kTileColumns,
         dense.data());
  DeviceArray<std::int64_t> positive(static_cast<std::size_t>(tiles)), places(positive.size() + 1);
  launch(cuda, "count_positive", count_positive, dim3(blocks_for(tiles, kWarps)), dim3(kBlockThreads),
         dense.data(), tiles, positive.data());
  exclusive_sum(cuda, positive.data(), places.data(), tiles);
  out.device_offsets.resize(static_cast<std::size_t>(lists) + 1);
  take_list_offsets(cuda, places.data(), tiles_per_list, lists, out.device_offsets.data());
  const auto offsets = download(cuda, out.device_offsets);
  out.offsets.assign(offsets.begin(), offsets.end());
  out.columns.resize(static_cast<std::size_t>(out.offsets.back()));
  out.sums.resize(out.columns.size());
  launch(cuda, "write_positive", write_positive<Index>, dim3(blocks_for(tiles, kWarps)), dim3(kBlockThreads),
         dense.data(), tiles, tiles_per_list, places.data(), out.columns.data(), out.sums.data());
}

#define ESPALIER_INSTANTIATE(Index)                                                                          \
  template void sum_rows(const Cuda&, const Csr<Index, Cuda>&, const RowPieces&, std::int64_t, std::int64_t, \
                         const EntryWeight&, DeviceSums<Index>&);
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
