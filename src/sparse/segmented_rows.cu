// Sums of rows: a warp for each piece of a row adds its entries to the dense array of their list,
// then a warp for each tile of kTileColumns columns counts and writes those with a positive sum.
#include <algorithm>

#include "espalier/base/arrays.hpp"
#include "espalier/base/device_algorithms.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/base/launch.hpp"
#include "espalier/sparse/segmented_rows.hpp"

namespace espalier {

namespace {

template <class Index>
void count_pieces(const Cuda& cuda, const RowView<Index>* rows, std::int64_t count, std::int64_t* pieces) {
  for_each(cuda, "count_pieces", count, [=] __device__(std::int64_t r) {
    pieces[r] = (rows[r].size + kPieceEntries - 1) / kPieceEntries;
  });
}

template <class Index>
void write_pieces(const Cuda& cuda, const RowView<Index>* rows, std::int64_t count,
                  const std::int64_t* offsets, std::int64_t segments, const std::int64_t* of_row,
                  RowPiece<Index>* pieces) {
  for_each(cuda, "write_pieces", count, [=] __device__(std::int64_t r) {
    const auto row = rows[r];
    const auto segment = static_cast<std::int32_t>(segment_of(offsets, segments, r));
    std::int64_t begin = 0;
    for (auto k = of_row[r]; k < of_row[r + 1]; ++k, begin += kPieceEntries) {
      const auto left = row.size - begin;
      pieces[k] = {row.indices + begin, row.values + begin,
                   static_cast<std::int32_t>(left < kPieceEntries ? left : kPieceEntries), segment};
    }
  });
}

}  // namespace

void take_at(const Cuda& cuda, const std::int64_t* values, const std::int64_t* places, std::int64_t count,
             std::int64_t* out) {
  for_each(cuda, "take_at", count, [=] __device__(std::int64_t k) { out[k] = values[places[k]]; });
}

template <class Index>
RowPieces<Index> cut_rows(const Cuda& cuda, const RowView<Index>* rows,
                          const SharedList<std::int64_t, Cuda>& offsets) {
  const auto count = offsets.back(), segments = offsets.size() - 1;
  RowPieces<Index> cut;
  DeviceArray<std::int64_t> of_row(count), of_segment(segments + 1);
  cut.of_row.resize(count + 1);
  count_pieces(cuda, rows, count, of_row.data());
  exclusive_sum(cuda, of_row.data(), cut.of_row.data(), count);
  take_at(cuda, cut.of_row.data(), offsets.data(), segments + 1, of_segment.data());
  const auto on_host = download(cuda, of_segment);
  cut.of_segment.assign(on_host.begin(), on_host.end());
  cut.pieces.resize(cut.count());
  write_pieces(cuda, rows, count, offsets.data(), segments, cut.of_row.data(), cut.pieces.data());
  return cut;
}

template RowPieces<std::int32_t> cut_rows(const Cuda&, const RowView<std::int32_t>*,
                                          const SharedList<std::int64_t, Cuda>&);
template RowPieces<std::int64_t> cut_rows(const Cuda&, const RowView<std::int64_t>*,
                                          const SharedList<std::int64_t, Cuda>&);

namespace {

constexpr std::int64_t kTileColumns = 1024;
// Sums need 8 bytes for each column and list, and what LADIES makes of a list 56 for an entry.
constexpr std::int64_t kShareOfFree = 8;

// The dense sums of consecutive lists.
struct DenseSums {
  unsigned long long* sums;  // [last - first][stride]
  std::int64_t first, last, stride;

  __device__ void add(std::int64_t list, std::int64_t column, std::uint64_t value) const {
    atomicAdd(sums + (list - first) * stride + column, static_cast<unsigned long long>(value));
  }
};

template <class Index>
__global__ void __launch_bounds__(kBlockThreads)
    add_pieces(const RowPiece<Index>* pieces, std::int64_t count, EntryWeight weight, DenseSums dense) {
  const auto number = warp_of_grid();
  if (number >= count) return;
  const auto piece = pieces[number];
#pragma unroll 4
  for (auto k = static_cast<int>(threadIdx.x % kWarp); k < piece.size; k += kWarp) {
    const auto counts = weight(piece.values == nullptr ? nullptr : piece.values + k);
    if (counts > 0) dense.add(piece.segment, piece.indices[k], counts);
  }
}

// Of the lists l with dense.first <= target[l] < dense.last.
template <class Index>
void add_sums(const Cuda& cuda, const Index* columns, const std::uint64_t* sums, std::int64_t count,
              const std::int64_t* offsets, std::int64_t lists, const std::int64_t* target, DenseSums dense) {
  for_each(cuda, "add_sums", count, [=] __device__(std::int64_t k) {
    const auto list = target[segment_of(offsets, lists, k)];
    if (list >= dense.first && list < dense.last) dense.add(list, columns[k], sums[k]);
  });
}

__global__ void __launch_bounds__(kBlockThreads)
    count_positive(const std::uint64_t* dense, std::int64_t tiles, std::int64_t* positive) {
  const auto tile = warp_of_grid();
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
  const auto tile = warp_of_grid();
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

// The positive sums of lists whose tiles of dense sums are one after another.
template <class Index>
Sums<Index, Cuda> compress(const Cuda& cuda, const DeviceArray<std::uint64_t>& dense, std::int64_t lists,
                           std::int64_t tiles_per_list) {
  const auto tiles = lists * tiles_per_list;
  DeviceArray<std::int64_t> positive(tiles), places(tiles + 1), begins(lists + 1);
  launch(cuda, "count_positive", count_positive, dim3(blocks_for(tiles, kBlockWarps)), dim3(kBlockThreads),
         dense.data(), tiles, positive.data());
  exclusive_sum(cuda, positive.data(), places.data(), tiles);
  take_list_offsets(cuda, places.data(), tiles_per_list, lists, begins.data());
  const auto offsets = download(cuda, begins);
  Sums<Index, Cuda> out = {{cuda, {offsets.begin(), offsets.end()}}, {}, {}};
  out.columns.resize(offsets.back());
  out.sums.resize(offsets.back());
  launch(cuda, "write_positive", write_positive<Index>, dim3(blocks_for(tiles, kBlockWarps)),
         dim3(kBlockThreads), dense.data(), tiles, tiles_per_list, places.data(), out.columns.data(),
         out.sums.data());
  return out;
}

// Calls add(dense sums), then visit(first, sums), for groups of lists whose sums fit the budget.
template <class Index, class Add>
void for_each_group(const Cuda& cuda, std::int64_t lists, std::int64_t columns, std::int64_t budget,
                    const Add& add, const SumVisitor<Index, Cuda>& visit) {
  const DevicePurpose purpose("the sums of the frontiers' rows");
  const auto tiles = std::max<std::int64_t>((columns + kTileColumns - 1) / kTileColumns, 1),
             stride = tiles * kTileColumns;
  if (budget == 0) budget = cuda.free_memory() / kShareOfFree;
  const auto at_once = std::max<std::int64_t>(budget / (8 * stride), 1);
  for (std::int64_t first = 0; first < lists; first += at_once) {
    const auto last = std::min(first + at_once, lists);
    DeviceArray<std::uint64_t> dense((last - first) * stride);
    fill_zero(cuda, dense);
    add(DenseSums{reinterpret_cast<unsigned long long*>(dense.data()), first, last, stride});
    auto sums = compress<Index>(cuda, dense, last - first, tiles);
    visit(first, sums);
  }
}

}  // namespace

template <class Index>
void sum_segments(const Cuda& cuda, const SegmentedRows<Index, Cuda>& rows, const EntryWeight& weight,
                  const SumVisitor<Index, Cuda>& visit, std::int64_t budget) {
  if (!rows.pieces) rows.pieces = cut_rows(cuda, rows.rows.data(), rows.offsets);
  const auto& pieces = *rows.pieces;
  const auto add = [&](const DenseSums& dense) {
    const auto begin = pieces.of_segment[dense.first], count = pieces.of_segment[dense.last] - begin;
    launch(cuda, "add_pieces", add_pieces<Index>, dim3(blocks_for(count, kBlockWarps)), dim3(kBlockThreads),
           pieces.pieces.data() + begin, count, weight, dense);
  };
  for_each_group<Index>(cuda, rows.segments(), rows.columns, budget, add, visit);
}

template <class Index>
Sums<Index, Cuda> stack_sums(const Cuda& cuda, const SegmentedRows<Index, Cuda>& rows,
                             const EntryWeight& weight) {
  std::vector<std::int64_t> offsets = {0};
  std::vector<DeviceArray<Index>> columns;
  std::vector<DeviceArray<std::uint64_t>> sums;
  sum_segments<Index>(cuda, rows, weight, [&](std::int64_t, Sums<Index, Cuda>& group) {
    for (std::int64_t list = 0; list < group.lists(); ++list)
      offsets.push_back(offsets.back() + group.offsets[list + 1] - group.offsets[list]);
    columns.push_back(std::move(group.columns));
    sums.push_back(std::move(group.sums));
  });
  return {{cuda, std::move(offsets)}, join(cuda, std::move(columns)), join(cuda, std::move(sums))};
}

template <class Index>
void merge_sums(const Cuda& cuda, const Sums<Index, Cuda>& partial,
                const SharedList<std::int64_t, Cuda>& target, std::int64_t count, std::int64_t columns,
                const SumVisitor<Index, Cuda>& visit, std::int64_t budget) {
  const auto add = [&](const DenseSums& dense) {
    add_sums(cuda, partial.columns.data(), partial.sums.data(), partial.offsets.back(),
             partial.offsets.data(), partial.lists(), target.data(), dense);
  };
  for_each_group<Index>(cuda, count, columns, budget, add, visit);
}

#define ESPALIER_INSTANTIATE(Index)                                                                          \
  template void sum_segments(const Cuda&, const SegmentedRows<Index, Cuda>&, const EntryWeight&,             \
                             const SumVisitor<Index, Cuda>&, std::int64_t);                                  \
  template Sums<Index, Cuda> stack_sums(const Cuda&, const SegmentedRows<Index, Cuda>&, const EntryWeight&); \
  template void merge_sums(const Cuda&, const Sums<Index, Cuda>&, const SharedList<std::int64_t, Cuda>&,     \
                           std::int64_t, std::int64_t, const SumVisitor<Index, Cuda>&, std::int64_t);
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
