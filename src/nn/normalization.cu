// Batch normalisation on the GPU: sums down the columns in the CPU's order, then one pass over
// the elements.
#include "espalier/nn/normalization.hpp"

#include "../dense/device_rows.hpp"
#include "device_row_sum.hpp"
#include "espalier/base/device_array.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/launch.hpp"

namespace espalier {

namespace {

using device_rows::load, device_rows::store;

__device__ double mean_of(double sum, std::int64_t rows) {
  return rows > 0 ? sum / static_cast<double>(rows) : 0.0;
}

/// x^ and y of every element.
struct Normalize {
  const float *mean, *inverse_deviation, *scale, *shift;
  float *z, *y;
  template <int kCount>
  __device__ void run(std::int64_t e, std::int64_t j) const {
    const auto m = load<kCount>(mean + j), r = load<kCount>(inverse_deviation + j),
               a = load<kCount>(scale + j), b = load<kCount>(shift + j);
    auto x = load<kCount>(z + e), out = x;
#pragma unroll
    for (int p = 0; p < kCount; ++p) {
      x.element[p] = (x.element[p] - m.element[p]) * r.element[p];
      out.element[p] = a.element[p] * x.element[p] + b.element[p];
    }
    store(z + e, x);
    store(y + e, out);
  }
};

/// dz of every element; `means` [2, width]: of dy x^, and of dy.
struct Backward {
  const float *means, *inverse_deviation, *scale, *normalized;
  float* gradient;
  std::int64_t width;
  template <int kCount>
  __device__ void run(std::int64_t e, std::int64_t j) const {
    const auto of_product = load<kCount>(means + j), of_gradient = load<kCount>(means + width + j),
               r = load<kCount>(inverse_deviation + j), a = load<kCount>(scale + j),
               x = load<kCount>(normalized + e);
    auto d = load<kCount>(gradient + e);
#pragma unroll
    for (int p = 0; p < kCount; ++p)
      d.element[p] = a.element[p] * r.element[p] *
                     (d.element[p] - of_gradient.element[p] - x.element[p] * of_product.element[p]);
    store(gradient + e, d);
  }
};

/// y of every element, by given statistics.
struct Evaluate {
  const float *mean, *inverse_deviation, *scale, *shift;
  float* z;
  template <int kCount>
  __device__ void run(std::int64_t e, std::int64_t j) const {
    const auto m = load<kCount>(mean + j), r = load<kCount>(inverse_deviation + j),
               a = load<kCount>(scale + j), b = load<kCount>(shift + j);
    auto x = load<kCount>(z + e);
#pragma unroll
    for (int p = 0; p < kCount; ++p)
      x.element[p] = a.element[p] * ((x.element[p] - m.element[p]) * r.element[p]) + b.element[p];
    store(z + e, x);
  }
};

template <int kCount, class Elementwise>
void over_packs(const Cuda& cuda, const char* name, std::int64_t rows, std::int64_t width,
                const Elementwise& function) {
  const std::int64_t packs = width / kCount;
  const Divisor by_packs(packs);
  for_each(cuda, name, rows * packs, [=] __device__(std::int64_t at) {
    function.template run<kCount>(at * kCount, (at - by_packs.quotient(at) * packs) * kCount);
  });
}

/// function(element number, its column) for the elements of matrices [rows, width], four at a time
/// if rows allow.
template <class Elementwise>
void over_elements(const Cuda& cuda, const char* name, std::int64_t rows, std::int64_t width,
                   const Elementwise& function) {
  if (width % 4 == 0)
    over_packs<4>(cuda, name, rows, width, function);
  else
    over_packs<1>(cuda, name, rows, width, function);
}

/// means[j], in double, and mean[j].
void column_means(const Cuda& cuda, const Matrix<float, Cuda>& z, double* means, float* mean) {
  const float* const in = z.data.data();
  const std::int64_t rows = z.rows, width = z.columns;
  sum_over_rows(
      cuda, rows, width,
      [=] __device__(std::int64_t i, std::int64_t j) { return static_cast<double>(in[i * width + j]); },
      [=] __device__(std::int64_t j, double sum) {
        means[j] = mean_of(sum, rows);
        mean[j] = static_cast<float>(means[j]);
      });
}

/// From the deviations, not from the squares, which would cancel.
void column_variances(const Cuda& cuda, const Matrix<float, Cuda>& z, const double* means, float* unbiased,
                      float* inverse_deviation) {
  const float* const in = z.data.data();
  const std::int64_t rows = z.rows, width = z.columns;
  const double unbias = static_cast<double>(rows) / static_cast<double>(std::max<std::int64_t>(rows - 1, 1));
  sum_over_rows(
      cuda, rows, width,
      [=] __device__(std::int64_t i, std::int64_t j) {
        const double deviation = static_cast<double>(in[i * width + j]) - means[j];
        return deviation * deviation;
      },
      [=] __device__(std::int64_t j, double sum) {
        const double variance = mean_of(sum, rows);
        unbiased[j] = static_cast<float>(variance * unbias);
        inverse_deviation[j] = inverse_deviation_of<float>(variance);
      });
}

void inverse_deviations(const Cuda& cuda, const Matrix<float, Cuda>& variance, float* inverse_deviation) {
  const float* const in = variance.data.data();
  for_each(cuda, "inverse_deviations", variance.columns, [=] __device__(std::int64_t j) {
    inverse_deviation[j] = inverse_deviation_of<float>(static_cast<double>(in[j]));
  });
}

/// dscale, dshift, and both divided by the rows: means [2, width].
void sums_and_means(const Cuda& cuda, const Matrix<float, Cuda>& normalized, const Matrix<float, Cuda>& dy,
                    float* dscale, float* dshift, float* means) {
  const std::int64_t rows = dy.rows, width = dy.columns;
  sum_scale_and_shift(cuda, normalized, dy, [=] __device__(std::int64_t j, const ScaleAndShift& sum) {
    dscale[j] = static_cast<float>(sum.scale);
    dshift[j] = static_cast<float>(sum.shift);
    means[j] = static_cast<float>(mean_of(sum.scale, rows));
    means[width + j] = static_cast<float>(mean_of(sum.shift, rows));
  });
}

}  // namespace

template <class T>
void batch_norm_forward(const Cuda& cuda, Matrix<T, Cuda>& z, const Matrix<T, Cuda>& scale,
                        const Matrix<T, Cuda>& shift, Matrix<T, Cuda>& output,
                        Matrix<T, Cuda>& inverse_deviation, Matrix<T, Cuda>& mean,
                        Matrix<T, Cuda>& unbiased_variance) {
  output.resize(z.rows, z.columns);
  inverse_deviation.resize(1, z.columns);
  DeviceArray<double> means(z.columns);
  column_means(cuda, z, means.data(), mean.data.data());
  column_variances(cuda, z, means.data(), unbiased_variance.data.data(), inverse_deviation.data.data());
  over_elements(cuda, "batch_norm_forward", z.rows, z.columns,
                Normalize{mean.data.data(), inverse_deviation.data.data(), scale.data.data(),
                          shift.data.data(), z.data.data(), output.data.data()});
}

template <class T>
void batch_norm_backward(const Cuda& cuda, const Matrix<T, Cuda>& normalized,
                         const Matrix<T, Cuda>& inverse_deviation, const Matrix<T, Cuda>& scale,
                         Matrix<T, Cuda>& gradient, Matrix<T, Cuda>& dscale, Matrix<T, Cuda>& dshift) {
  const std::int64_t width = gradient.columns;
  DeviceArray<float> means(2 * width);
  sums_and_means(cuda, normalized, gradient, dscale.data.data(), dshift.data.data(), means.data());
  over_elements(cuda, "batch_norm_backward", gradient.rows, width,
                Backward{means.data(), inverse_deviation.data.data(), scale.data.data(),
                         normalized.data.data(), gradient.data.data(), width});
}

template <class T>
void batch_norm_evaluate(const Cuda& cuda, const Matrix<T, Cuda>& mean, const Matrix<T, Cuda>& variance,
                         const Matrix<T, Cuda>& scale, const Matrix<T, Cuda>& shift, Matrix<T, Cuda>& z) {
  DeviceArray<float> inverse_deviation(z.columns);
  inverse_deviations(cuda, variance, inverse_deviation.data());
  over_elements(cuda, "batch_norm_evaluate", z.rows, z.columns,
                Evaluate{mean.data.data(), inverse_deviation.data(), scale.data.data(), shift.data.data(),
                         z.data.data()});
}

template void batch_norm_forward<float>(const Cuda&, Matrix<float, Cuda>&, const Matrix<float, Cuda>&,
                                        const Matrix<float, Cuda>&, Matrix<float, Cuda>&,
                                        Matrix<float, Cuda>&, Matrix<float, Cuda>&, Matrix<float, Cuda>&);
template void batch_norm_backward<float>(const Cuda&, const Matrix<float, Cuda>&, const Matrix<float, Cuda>&,
                                         const Matrix<float, Cuda>&, Matrix<float, Cuda>&,
                                         Matrix<float, Cuda>&, Matrix<float, Cuda>&);
template void batch_norm_evaluate<float>(const Cuda&, const Matrix<float, Cuda>&, const Matrix<float, Cuda>&,
                                         const Matrix<float, Cuda>&, const Matrix<float, Cuda>&,
                                         Matrix<float, Cuda>&);

// Layer normalisation on the GPU: eight threads have a row, one for each of the eight interleaved
// sums that the CPU adds, so the bits are the same. They read 32 neighbouring bytes at a time, a
// sector of memory.

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
  T *const to_scale = dscale.data.data(), *const to_shift = dshift.data.data();
  sum_scale_and_shift(cuda, normalized, gradient, [=] __device__(std::int64_t j, const ScaleAndShift& sum) {
    to_scale[j] = static_cast<T>(sum.scale);
    to_shift[j] = static_cast<T>(sum.shift);
  });
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
