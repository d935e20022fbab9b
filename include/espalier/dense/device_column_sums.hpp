// The twin of sum_over_rows (dense/column_sums.hpp) on a GPU, with its chunks and its order: the
// same bits where the numbers are the same. For .cu files only.
#pragma once

#include "espalier/base/device_array.hpp"
#include "espalier/base/launch.hpp"
#include "espalier/dense/column_sums.hpp"
#include "espalier/dense/matrix.hpp"

namespace espalier {

namespace column_sums {

inline constexpr int kWarps = kBlockThreads / kWarp,
                     kRowsOfWarp = 8,  ///< whose terms a thread takes up at once
    kStagedRows = kWarps * kRowsOfWarp;

/// partials[chunk][j] = the sum of value(i, j) over the chunk's rows, in their order; then keep(i,
/// j, the term). A block has kWarp columns of a chunk: its warps take up the terms of kStagedRows
/// rows, side by side, and the first adds them, row after row.
template <class Sum, class Value, class Keep>
__global__ void __launch_bounds__(kBlockThreads)
    sum_chunks(std::int64_t rows, std::int64_t width, Sum* partials, Value value, Keep keep) {
  __shared__ Sum terms[kStagedRows][kWarp];
  const int lane = static_cast<int>(threadIdx.x), warp = static_cast<int>(threadIdx.y);
  const std::int64_t j = static_cast<std::int64_t>(blockIdx.y) * kWarp + lane,
                     begin = static_cast<std::int64_t>(blockIdx.x) * kSummedRows,
                     end = begin + kSummedRows < rows ? begin + kSummedRows : rows;
  Sum sum{};
  for (std::int64_t first = begin; first < end; first += kStagedRows) {
    const int count = end - first < kStagedRows ? static_cast<int>(end - first) : kStagedRows;
    Sum mine[kRowsOfWarp];
#pragma unroll
    for (int k = 0; k < kRowsOfWarp; ++k)
      if (k * kWarps + warp < count && j < width) mine[k] = value(first + k * kWarps + warp, j);
#pragma unroll
    for (int k = 0; k < kRowsOfWarp; ++k)
      if (k * kWarps + warp < count && j < width) {
        keep(first + k * kWarps + warp, j, mine[k]);
        terms[k * kWarps + warp][lane] = mine[k];
      }
    __syncthreads();
    if (warp == 0 && j < width)
#pragma unroll 16
      for (int k = 0; k < count; ++k) sum += terms[k][lane];
    __syncthreads();
  }
  if (warp == 0 && j < width) partials[blockIdx.x * width + j] = sum;
}

/// finish(j, the sum of the chunks' sums of column j, in their order).
template <class Sum, class Finish>
__global__ void __launch_bounds__(kBlockThreads)
    add_chunks(const Sum* partials, std::int64_t chunks, std::int64_t width, Finish finish) {
  const auto j = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (j >= width) return;
  Sum sum{};
#pragma unroll 16
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) sum += partials[chunk * width + j];
  finish(j, sum);
}

struct KeepNothing {
  template <class Sum>
  __device__ void operator()(std::int64_t, std::int64_t, const Sum&) const {}
};

}  // namespace column_sums

/// finish(j, sum over i < rows of value(i, j)) for j < width < 2^21, also when there are no rows.
/// `value`, which gives a Sum, and `finish` are __device__ functions. So is `keep`: when the terms
/// of some rows are known, keep(i, j, value(i, j)) may write what they were made of.
template <class Sum = double, class Value, class Finish, class Keep = column_sums::KeepNothing>
void sum_over_rows(const Cuda& cuda, std::int64_t rows, std::int64_t width, const Value& value,
                   const Finish& finish, const Keep& keep = {}) {
  using namespace column_sums;
  const std::int64_t chunks = (rows + kSummedRows - 1) / kSummedRows;
  DeviceArray<Sum> partials(chunks * width);
  launch(cuda, "sum_chunks", sum_chunks<Sum, Value, Keep>,
         dim3(static_cast<unsigned>(chunks), blocks_for(width, kWarp)), dim3(kWarp, kWarps), rows, width,
         partials.data(), value, keep);
  launch(cuda, "add_chunks", add_chunks<Sum, Finish>, dim3(blocks_for(width)), dim3(kBlockThreads),
         partials.data(), chunks, width, finish);
}

}  // namespace espalier
