// Dropout on the GPU: a thread has eight elements of a row, which one Philox block decides. The
// words, and so the masks, are the CPU's.
#include "espalier/base/device_array.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/launch.hpp"
#include "espalier/nn/dropout.hpp"
#include "pack.hpp"

namespace espalier {

namespace {

/// What decides the mask of a matrix, and the eights that each of its rows has.
struct Mask {
  RandomStream stream;
  std::uint32_t threshold;
  float scale;
  std::int64_t columns, eights;
  bool packed;  ///< rows begin where packs may
};

__device__ float relu(float x) {
  return x < 0 ? 0 : x;  // NaN stays
}

/// Are eight elements 0 or -0?
__device__ bool all_zero(const float (&x)[kMasksPerBlock]) {
  std::uint32_t any = 0;
#pragma unroll
  for (int p = 0; p < kMasksPerBlock; ++p) any |= __float_as_uint(x[p]);
  return (any & 0x7fffffffu) == 0;
}

/// Eight elements, or the `count` that the row has left; the others are 0.
__device__ void load_eight(const float* from, std::int64_t count, bool packed, float (&x)[kMasksPerBlock]) {
  if (packed && count >= kMasksPerBlock) {
    const auto low = load_pack<4>(from), high = load_pack<4>(from + 4);
#pragma unroll
    for (int p = 0; p < 4; ++p) x[p] = low.at[p], x[p + 4] = high.at[p];
  } else {
#pragma unroll
    for (int p = 0; p < kMasksPerBlock; ++p) x[p] = p < count ? from[p] : 0;
  }
}
__device__ void store_eight(const float (&x)[kMasksPerBlock], std::int64_t count, bool packed, float* to) {
  if (packed && count >= kMasksPerBlock) {
    store_pack<4>(to, {{x[0], x[1], x[2], x[3]}});
    store_pack<4>(to + 4, {{x[4], x[5], x[6], x[7]}});
  } else {
#pragma unroll
    for (int p = 0; p < kMasksPerBlock; ++p)
      if (p < count) to[p] = x[p];
  }
}

/// Drops from eight number `eight` of row `row`. Eight zeros of one row stay as they are, and
/// draw nothing.
__device__ void drop(Mask mask, std::int64_t row, std::int64_t eight, std::int64_t count,
                     float (&x)[kMasksPerBlock]) {
  if (count >= kMasksPerBlock && all_zero(x)) return;
  mask.stream.row = static_cast<std::uint64_t>(row);
  const auto words = random_block(mask.stream, static_cast<std::uint64_t>(eight));
#pragma unroll
  for (int p = 0; p < kMasksPerBlock; ++p)
    x[p] = dropout_keeps(words, p, mask.threshold) ? x[p] * mask.scale : 0.0f;
}

/// to = dropout(from), or dropout(relu(from)); `to` may be `from`. Shapes [rows, mask.columns].
template <bool kRelu>
__global__ void __launch_bounds__(kBlockThreads)
    drop_eights(Mask mask, std::int64_t rows, const float* from, float* to) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (auto i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < rows * mask.eights;
       i += step) {
    const std::int64_t row = i / mask.eights, eight = i - row * mask.eights,
                       at = row * mask.columns + eight * kMasksPerBlock,
                       count = mask.columns - eight * kMasksPerBlock;
    float x[kMasksPerBlock];
    load_eight(from + at, count, mask.packed, x);
    if constexpr (kRelu)
#pragma unroll
      for (float& element : x) element = relu(element);
    drop(mask, row, eight, count, x);
    store_eight(x, count, mask.packed, to + at);
  }
}

/// function(element number) for the elements of a matrix, four to a thread.
template <class Elementwise>
__global__ void __launch_bounds__(kBlockThreads)
    fours_kernel(std::int64_t size, bool packed, Elementwise function) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x * 4;
  for (auto e = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * 4; e < size; e += step)
    if (packed && e + 4 <= size)
      function.template run<4>(e);
    else
      for (std::int64_t one = e; one < e + 4 && one < size; ++one) function.template run<1>(one);
}

struct Relu {
  float* h;
  template <int kCount>
  __device__ void run(std::int64_t e) const {
    auto x = load_pack<kCount>(h + e);
#pragma unroll
    for (float& element : x.at) element = relu(element);
    store_pack(h + e, x);
  }
};

struct ReluDropoutBackward {
  float scale;
  const float* h;
  float* gradient;
  template <int kCount>
  __device__ void run(std::int64_t e) const {
    const auto x = load_pack<kCount>(h + e);
    auto d = load_pack<kCount>(gradient + e);
#pragma unroll
    for (int p = 0; p < kCount; ++p) d.at[p] = x.at[p] > 0 ? d.at[p] * scale : 0.0f;
    store_pack(gradient + e, d);
  }
};

constexpr std::int64_t kMostBlocks = std::int64_t{1} << 20;

dim3 grid_of(std::int64_t threads) {
  return dim3(static_cast<unsigned>(std::min((threads + kBlockThreads - 1) / kBlockThreads, kMostBlocks)));
}

template <bool kRelu>
void launch_drop(const Cuda& cuda, const char* name, const RandomStream& stream, double rate,
                 ConstMatrixView<float, Cuda> from, float* to) {
  const Mask mask{stream,
                  dropout_threshold(rate),
                  keep_scale<float>(rate),
                  from.columns,
                  (from.columns + kMasksPerBlock - 1) / kMasksPerBlock,
                  from.columns % 4 == 0 && holds_packs(from.data) && holds_packs(to)};
  launch(cuda, name, drop_eights<kRelu>, grid_of(from.rows * mask.eights), dim3(kBlockThreads), mask,
         from.rows, from.data, to);
}

template <class Elementwise>
void launch_fours(const Cuda& cuda, const char* name, std::int64_t size, bool packed,
                  const Elementwise& function) {
  launch(cuda, name, fours_kernel<Elementwise>, grid_of((size + 3) / 4), dim3(kBlockThreads), size, packed,
         function);
}

}  // namespace

template <class T>
void dropout(const Cuda& cuda, const RandomStream& stream, double rate, ConstMatrixView<T, Cuda> in,
             Matrix<T, Cuda>& out) {
  out.resize(in.rows, in.columns);
  launch_drop<false>(cuda, "dropout", stream, rate, in, out.data.data());
}

template <class T>
void relu_dropout(const Cuda& cuda, const RandomStream& stream, double rate, MatrixView<T, Cuda> h) {
  if (rate > 0)
    launch_drop<true>(cuda, "relu_dropout", stream, rate, h, h.data);
  else
    launch_fours(cuda, "relu", h.rows * h.columns, holds_packs(h.data), Relu{h.data});
}

template <class T>
void relu_dropout_backward(const Cuda& cuda, double rate, ConstMatrixView<T, Cuda> h,
                           MatrixView<T, Cuda> gradient) {
  ESPALIER_CHECK(h.rows == gradient.rows && h.columns == gradient.columns, "[{}, {}] and [{}, {}]", h.rows,
                 h.columns, gradient.rows, gradient.columns);
  launch_fours(cuda, "relu_dropout_backward", h.rows * h.columns,
               holds_packs(h.data) && holds_packs(gradient.data),
               ReluDropoutBackward{keep_scale<float>(rate), h.data, gradient.data});
}

template void dropout<float>(const Cuda&, const RandomStream&, double, ConstMatrixView<float, Cuda>,
                             Matrix<float, Cuda>&);
template void relu_dropout<float>(const Cuda&, const RandomStream&, double, MatrixView<float, Cuda>);
template void relu_dropout_backward<float>(const Cuda&, double, ConstMatrixView<float, Cuda>,
                                           MatrixView<float, Cuda>);

}  // namespace espalier
