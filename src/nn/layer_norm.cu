// Layer normalisation on the GPU: eight threads have a row, one for each of the eight interleaved
// sums that the CPU adds, so the bits are the same. They read 32 neighbouring bytes at a time, a
// sector of memory.
#include "espalier/base/device_array.hpp"
#include "espalier/base/launch.hpp"
#include "espalier/nn/batch_norm.hpp"
#include "espalier/nn/layer_norm.hpp"
#include "row_sum.hpp"

namespace espalier {

namespace {

constexpr int kRowThreads = 8, kRowsOfBlock = kBlockThreads / kRowThreads;

__device__ int part_of_row() {
  return static_cast<int>(threadIdx.x) % kRowThreads;
}
__device__ std::int64_t row_of_thread() {
  return static_cast<std::int64_t>(blockIdx.x) * kRowsOfBlock + threadIdx.x / kRowThreads;
}

/// The mean of term(0) .. term(width - 1), known to the row's eight threads. All lanes of the warp
/// must call it; those beyond the last row with active_width 0.
template <class Term>
__device__ double mean_of(std::int64_t width, std::int64_t active_width, const Term& term) {
  double sum = 0;
#pragma unroll 8
  for (std::int64_t j = part_of_row(); j < active_width; j += kRowThreads)
    sum += static_cast<double>(term(j));
  // ((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7)), in every one of the eight.
  for (int lanes = 1; lanes < kRowThreads; lanes *= 2) sum += __shfl_xor_sync(kAllLanes, sum, lanes);
  return sum / static_cast<double>(width);
}

/// Row by row, y = scale x^ + shift, where y may be z; unless inverse_deviation is null, z becomes
/// x^ and it is written.
__global__ void __launch_bounds__(kBlockThreads)
    normalize_rows(std::int64_t rows, std::int64_t width, const float* scale, const float* shift, float* z,
                   float* y, float* inverse_deviation) {
  const std::int64_t row = row_of_thread(), active = row < rows ? width : 0;
  float *from = z + row * width, *to = y + row * width;
  const double mean = mean_of(width, active, [&](std::int64_t j) { return from[j]; });
  const double variance = mean_of(width, active, [&](std::int64_t j) {
    const double deviation = static_cast<double>(from[j]) - mean;
    return deviation * deviation;
  });
  const float inverse = inverse_deviation_of<float>(variance), center = static_cast<float>(mean);
#pragma unroll 4
  for (std::int64_t j = part_of_row(); j < active; j += kRowThreads) {
    const float normalized = (from[j] - center) * inverse;
    if (inverse_deviation != nullptr) from[j] = normalized;
    to[j] = scale[j] * normalized + shift[j];
  }
  if (inverse_deviation != nullptr && row < rows && part_of_row() == 0) inverse_deviation[row] = inverse;
}

/// Row by row, gradient = dy becomes dz.
__global__ void __launch_bounds__(kBlockThreads)
    backward_of_rows(std::int64_t rows, std::int64_t width, const float* scale, const float* normalized,
                     const float* inverse_deviation, float* gradient) {
  const std::int64_t row = row_of_thread(), active = row < rows ? width : 0;
  const float* x = normalized + row * width;
  float* d = gradient + row * width;
  const auto mean =
      static_cast<float>(mean_of(width, active, [&](std::int64_t j) { return d[j] * scale[j]; }));
  const auto correlation =
      static_cast<float>(mean_of(width, active, [&](std::int64_t j) { return d[j] * scale[j] * x[j]; }));
  const float inverse = row < rows ? inverse_deviation[row] : 0;
#pragma unroll 4
  for (std::int64_t j = part_of_row(); j < active; j += kRowThreads)
    d[j] = (d[j] * scale[j] - mean - x[j] * correlation) * inverse;
}

}  // namespace

template <class T>
void layer_norm_forward(const Cuda& cuda, Matrix<T, Cuda>& z, const Matrix<T, Cuda>& scale,
                        const Matrix<T, Cuda>& shift, Matrix<T, Cuda>& output,
                        Matrix<T, Cuda>& inverse_deviation) {
  output.resize(z.rows, z.columns);
  inverse_deviation.resize(z.rows, 1);
  launch(cuda, "layer_norm_forward", normalize_rows, dim3(blocks_for(z.rows, kRowsOfBlock)),
         dim3(kBlockThreads), z.rows, z.columns, scale.data.data(), shift.data.data(), z.data.data(),
         output.data.data(), inverse_deviation.data.data());
}

template <class T>
void layer_norm_backward(const Cuda& cuda, const Matrix<T, Cuda>& normalized,
                         const Matrix<T, Cuda>& inverse_deviation, const Matrix<T, Cuda>& scale,
                         Matrix<T, Cuda>& gradient, Matrix<T, Cuda>& dscale, Matrix<T, Cuda>& dshift) {
  sum_scale_and_shift(cuda, normalized, gradient, dscale, dshift);
  launch(cuda, "layer_norm_backward", backward_of_rows, dim3(blocks_for(gradient.rows, kRowsOfBlock)),
         dim3(kBlockThreads), gradient.rows, gradient.columns, scale.data.data(), normalized.data.data(),
         inverse_deviation.data.data(), gradient.data.data());
}

template <class T>
void layer_norm_evaluate(const Cuda& cuda, const Matrix<T, Cuda>& scale, const Matrix<T, Cuda>& shift,
                         Matrix<T, Cuda>& z) {
  launch(cuda, "layer_norm_evaluate", normalize_rows, dim3(blocks_for(z.rows, kRowsOfBlock)),
         dim3(kBlockThreads), z.rows, z.columns, scale.data.data(), shift.data.data(), z.data.data(),
         z.data.data(), nullptr);
}

template void layer_norm_forward<float>(const Cuda&, Matrix<float, Cuda>&, const Matrix<float, Cuda>&,
                                        const Matrix<float, Cuda>&, Matrix<float, Cuda>&,
                                        Matrix<float, Cuda>&);
template void layer_norm_backward<float>(const Cuda&, const Matrix<float, Cuda>&, const Matrix<float, Cuda>&,
                                         const Matrix<float, Cuda>&, Matrix<float, Cuda>&,
                                         Matrix<float, Cuda>&, Matrix<float, Cuda>&);
template void layer_norm_evaluate<float>(const Cuda&, const Matrix<float, Cuda>&, const Matrix<float, Cuda>&,
                                         Matrix<float, Cuda>&);

}  // namespace espalier
