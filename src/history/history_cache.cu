// A cache of history on a GPU: rows in its memory, a thread for each word or element.
#include "espalier/base/launch.hpp"
#include "history_cache.inl.hpp"
#include "history_rows.hpp"
#include "history_state.inl.hpp"

namespace espalier {

namespace {

constexpr int kScaleLanes = 8;
constexpr int kScaledOfBlock = kBlockThreads / kScaleLanes;

/// The scales of rows, by eight lanes each: the least and the largest are the same in any order.
__global__ void __launch_bounds__(kBlockThreads)
    find_byte_scales(MatrixView<const float, Cuda> rows, const std::int64_t* which, std::int64_t count,
                     ByteScale* scales) {
  const auto k = static_cast<std::int64_t>(blockIdx.x) * kScaledOfBlock + threadIdx.x / kScaleLanes;
  const int lane = static_cast<int>(threadIdx.x) % kScaleLanes;
  ByteScale scale;
  if (k < count)
    for (std::int64_t j = lane; j < rows.columns; j += kScaleLanes) scale.take(rows(which[k], j));
  for (int distance = kScaleLanes / 2; distance > 0; distance /= 2) {
    ByteScale other;
    other.lo = __shfl_xor_sync(kAllLanes, scale.lo, distance);
    other.hi = __shfl_xor_sync(kAllLanes, scale.hi, distance);
    scale.take(other);
  }
  if (k < count && lane == 0) scales[k] = scale;
}

template <HistoryPrecision kPrecision>
void keep_rows_as(const Cuda& cuda, MatrixView<const float, Cuda> rows, const std::int64_t* which,
                  std::int64_t count, std::int64_t words, std::uint32_t* to) {
  DeviceArray<ByteScale> scales(kPrecision == HistoryPrecision::kUint8 ? count : 0);
  auto* const scale = scales.data();
  if (kPrecision == HistoryPrecision::kUint8)
    launch(cuda, "find_byte_scales", find_byte_scales, dim3(blocks_for(count, kScaledOfBlock)),
           dim3(kBlockThreads), rows, which, count, scale);
  for_each_in_rows(cuda, "keep_rows", count, words, [=] __device__(std::int64_t k, std::int64_t w) {
    to[k * words + w] =
        kept_word<kPrecision>(rows.row(which[k]), rows.columns, scale == nullptr ? ByteScale{} : scale[k], w);
  });
}

template <HistoryPrecision kPrecision>
void read_rows_as(const Cuda& cuda, const std::uint32_t* kept, std::int64_t words, const std::int32_t* slots,
                  const std::int64_t* positions, MatrixView<float, Cuda> to) {
  for_each_in_rows(cuda, "read_rows", to.rows, to.columns, [=] __device__(std::int64_t k, std::int64_t j) {
    const std::int64_t slot = slots[positions == nullptr ? k : positions[k]];
    to(k, j) = kept_element<kPrecision>(kept + slot * words, j);
  });
}

}  // namespace

void keep_rows(const Cuda& cuda, HistoryPrecision precision, ConstMatrixView<float, Cuda> rows,
               const std::int64_t* which, std::int64_t count, std::int64_t words, std::uint32_t* to) {
  with_precision(precision, [&]<HistoryPrecision kPrecision>() {
    keep_rows_as<kPrecision>(cuda, rows, which, count, words, to);
  });
}

void read_rows(const Cuda& cuda, HistoryPrecision precision, const std::uint32_t* kept, std::int64_t words,
               const std::int32_t* slots, const std::int64_t* positions, MatrixView<float, Cuda> to) {
  with_precision(precision, [&]<HistoryPrecision kPrecision>() {
    read_rows_as<kPrecision>(cuda, kept, words, slots, positions, to);
  });
}

void move_rows(const Cuda& cuda, const std::uint32_t* from, const std::int64_t* sources, std::int64_t count,
               std::int64_t words, const std::int64_t* targets, std::uint32_t* to) {
  for_each_in_rows(cuda, "move_rows", count, words, [=] __device__(std::int64_t k, std::int64_t w) {
    to[(targets == nullptr ? k : targets[k]) * words + w] =
        from[(sources == nullptr ? k : sources[k]) * words + w];
  });
}

template class HistoryCacheOn<Cuda>;

}  // namespace espalier
