// The CUDA implementation of sum_over_rows (dense/column_sums.hpp) on a GPU, with its chunks and
// its order: the same bits where the numbers are the same. For .cu files only.
#pragma once

#include "espalier/base/device_array.hpp"
#include "espalier/base/launch.hpp"
#include "espalier/dense/column_sums.hpp"
#include "espalier/dense/matrix.hpp"

namespace espalier {

namespace column_sums {

/// Rows of a thread whose loads are under way together, where they are floats.
inline constexpr int kRowsAtOnce = 32;
inline constexpr int kChunksOfBlock = 2;
/// Blocks of a multiprocessor at once.
inline constexpr int kBlocksAtOnce = 10;

/// partials[chunk][j] = the sum of value(i, j) over the chunk's rows, in their order; then keep(i,
/// j, the term). A thread has a column of a chunk, a warp neighbouring columns: chunks and columns
/// are many, so what a thread needs is many loads under way, not company.
template <class Sum, class Value, class Keep>
__global__ void __launch_bounds__(kWarp* kChunksOfBlock, kBlocksAtOnce)
    sum_chunks(std::int64_t rows, std::int64_t width, Sum* partials, Value value, Keep keep) {
  using Term = decltype(value(std::int64_t{}, std::int64_t{}));
  constexpr int kAtOnce = kRowsAtOnce * static_cast<int>(sizeof(float)) / static_cast<int>(sizeof(Term));
  const std::int64_t j = static_cast<std::int64_t>(blockIdx.y) * kWarp + threadIdx.x,
                     chunk = static_cast<std::int64_t>(blockIdx.x) * kChunksOfBlock + threadIdx.y,
                     begin = chunk * kSummedRows,
                     end = begin + kSummedRows < rows ? begin + kSummedRows : rows;
  if (j >= width || begin >= end) return;
  Sum sum{};
  Term terms[kAtOnce];
  std::int64_t first = begin;
  for (; first + kAtOnce <= end; first += kAtOnce) {
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) terms[k] = value(first + k, j);
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      keep(first + k, j, terms[k]);
      sum += static_cast<Sum>(terms[k]);
    }
  }
  const int left = static_cast<int>(end - first);
#pragma unroll
  for (int k = 0; k < kAtOnce; ++k)
    if (k < left) terms[k] = value(first + k, j);
#pragma unroll
  for (int k = 0; k < kAtOnce; ++k)
    if (k < left) {
      keep(first + k, j, terms[k]);
      sum += static_cast<Sum>(terms[k]);
    }
  partials[chunk * width + j] = sum;
}

/// finish(j, the sum of the chunks' sums of column j, in their order).
template <class Sum, class Finish>
__global__ void __launch_bounds__(kWarp)
    add_chunks(const Sum* partials, std::int64_t chunks, std::int64_t width, Finish finish) {
  const auto j = static_cast<std::int64_t>(blockIdx.x) * kWarp + threadIdx.x;
  if (j >= width) return;
  Sum sum{};
#pragma unroll 32
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) sum += partials[chunk * width + j];
  finish(j, sum);
}

}  // namespace column_sums

/// finish(j, sum over i < rows of value(i, j)) for j < width < 2^21, also when there are no rows.
/// `value`, which gives a Sum or what a Sum is made of, and `finish` are __device__ functions. So
/// is `keep`: when the terms of some rows are known, keep(i, j, value(i, j)) may write what they
/// were made of.
template <class Sum = double, class Value, class Finish, class Keep = column_sums::KeepNothing>
void sum_over_rows(const Cuda& cuda, std::int64_t rows, std::int64_t width, const Value& value,
                   const Finish& finish, const Keep& keep = {}) {
  using namespace column_sums;
  const std::int64_t chunks = (rows + kSummedRows - 1) / kSummedRows;
  DeviceArray<Sum> partials(chunks * width);
  launch(cuda, "sum_chunks", sum_chunks<Sum, Value, Keep>,
         dim3(blocks_for(chunks, kChunksOfBlock), blocks_for(width, kWarp)), dim3(kWarp, kChunksOfBlock),
         rows, width, partials.data(), value, keep);
  launch(cuda, "add_chunks", add_chunks<Sum, Finish>, dim3(blocks_for(width, kWarp)), dim3(kWarp),
         partials.data(), chunks, width, finish);
}

/// finish(the sum of value(i, j) over all i < rows and j < width): column by column, then over the
/// columns.
template <class Value, class Finish, class Keep = column_sums::KeepNothing>
void sum_of_all(const Cuda& cuda, const char* name, std::int64_t rows, std::int64_t width, const Value& value,
                const Finish& finish, const Keep& keep = {}) {
  DeviceArray<double> columns(static_cast<std::size_t>(width));
  double* const of_column = columns.data();
  sum_over_rows(
      cuda, rows, width, value, [=] __device__(std::int64_t j, double sum) { of_column[j] = sum; }, keep);
  for_each(cuda, name, 1, [=] __device__(std::int64_t) {
    double total = 0;
    for (std::int64_t j = 0; j < width; ++j) total += of_column[j];
    finish(total);
  });
}

}  // namespace espalier
