// The twin of sum_over_rows (dense/column_sums.hpp) on a GPU, with its chunks and its order: the
// same bits where the numbers are the same. For .cu files only.
#pragma once

#include "espalier/base/device_array.hpp"
#include "espalier/base/launch.hpp"
#include "espalier/dense/column_sums.hpp"
#include "espalier/dense/matrix.hpp"

namespace espalier {

namespace column_sums {

inline constexpr int kColumnsOfBlock = kWarp, kChunksOfBlock = 8;

/// partials[chunk][j] = the sum of value(i, j) over the chunk's rows, in their order. A thread has
/// one column of one chunk; a warp reads neighbouring columns of a row.
template <class Value>
__global__ void __launch_bounds__(kColumnsOfBlock* kChunksOfBlock)
    sum_chunks(std::int64_t rows, std::int64_t width, double* partials, Value value) {
  const auto j = static_cast<std::int64_t>(blockIdx.y) * kColumnsOfBlock + threadIdx.x,
             chunk = static_cast<std::int64_t>(blockIdx.x) * kChunksOfBlock + threadIdx.y,
             begin = chunk * kSummedRows;
  if (j >= width || begin >= rows) return;
  const std::int64_t end = begin + kSummedRows < rows ? begin + kSummedRows : rows;
  double sum = 0;
#pragma unroll 32
  for (std::int64_t i = begin; i < end; ++i) sum += value(i, j);
  partials[chunk * width + j] = sum;
}

/// finish(j, the sum of the chunks' sums of column j, in their order).
template <class Finish>
__global__ void __launch_bounds__(kBlockThreads)
    add_chunks(const double* partials, std::int64_t chunks, std::int64_t width, Finish finish) {
  const auto j = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (j >= width) return;
  double sum = 0;
#pragma unroll 32
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) sum += partials[chunk * width + j];
  finish(j, sum);
}

}  // namespace column_sums

/// finish(j, sum over i < rows of value(i, j)) for j < width < 2^21, also when there are no rows.
/// `value`, which gives a double, and `finish` are __device__ lambdas.
template <class Value, class Finish>
void sum_over_rows(const Cuda& cuda, std::int64_t rows, std::int64_t width, const Value& value,
                   const Finish& finish) {
  using namespace column_sums;
  const std::int64_t chunks = (rows + kSummedRows - 1) / kSummedRows;
  DeviceArray<double> partials(chunks * width);
  launch(cuda, "sum_chunks", sum_chunks<Value>,
         dim3(blocks_for(chunks, kChunksOfBlock), blocks_for(width, kColumnsOfBlock)),
         dim3(kColumnsOfBlock, kChunksOfBlock), rows, width, partials.data(), value);
  launch(cuda, "add_chunks", add_chunks<Finish>, dim3(blocks_for(width)), dim3(kBlockThreads),
         partials.data(), chunks, width, finish);
}

/// sums[j], of device memory, = sum over i < rows of value(i, j).
template <class Value>
void sum_over_rows(const Cuda& cuda, std::int64_t rows, std::int64_t width, double* sums,
                   const Value& value) {
  sum_over_rows(cuda, rows, width, value, [=] __device__(std::int64_t j, double sum) { sums[j] = sum; });
}

/// sums[j] = sum of z(i, j) over the rows. z [rows, width].
inline void sum_columns(const Cuda& cuda, ConstMatrixView<float, Cuda> z, double* sums) {
  const float* numbers = z.data;
  const std::int64_t width = z.columns;
  sum_over_rows(cuda, z.rows, width, sums, [=] __device__(std::int64_t i, std::int64_t j) {
    return static_cast<double>(numbers[i * width + j]);
  });
}

}  // namespace espalier
