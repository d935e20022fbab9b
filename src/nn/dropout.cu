// Dropout on the GPU: a thread has eight elements of a row, which one Philox block decides. The
// words, and so the masks, are the CPU's.
#include "../dense/device_rows.hpp"
#include "device_row_sum.hpp"
#include "espalier/base/error.hpp"
#include "espalier/nn/dropout.hpp"

namespace espalier {

namespace {

using device_rows::load, device_rows::store;

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
    const auto low = load<4>(from), high = load<4>(from + 4);
#pragma unroll
    for (int p = 0; p < 4; ++p) x[p] = low.element[p], x[p + 4] = high.element[p];
  } else {
#pragma unroll
    for (int p = 0; p < kMasksPerBlock; ++p) x[p] = p < count ? from[p] : 0;
  }
}
__device__ void store_eight(const float (&x)[kMasksPerBlock], std::int64_t count, bool packed, float* to) {
  if (packed && count >= kMasksPerBlock) {
    store<4>(to, {{x[0], x[1], x[2], x[3]}});
    store<4>(to + 4, {{x[4], x[5], x[6], x[7]}});
  } else {
#pragma unroll
    for (int p = 0; p < kMasksPerBlock; ++p)
      if (p < count) to[p] = x[p];
  }
}

/// to = dropout(from), or dropout(relu(from)), eight elements of a row at a time; `to` may
/// be `from`.
template <bool kRelu>
struct DropEights {
  KeyedStream stream;  ///< but for its row
  std::uint32_t threshold;
  float scale;
  std::int64_t columns;
  bool packed;  ///< rows begin where packs may
  const float* from;
  float* to;

  __device__ void operator()(std::int64_t row, std::int64_t eight) const {
    const std::int64_t at = row * columns + eight * kMasksPerBlock, count = columns - eight * kMasksPerBlock;
    float x[kMasksPerBlock];
    load_eight(from + at, count, packed, x);
    if constexpr (kRelu)
#pragma unroll
      for (float& element : x) element = relu(element);
    if (threshold > 0) drop(row, eight, count, x);
    store_eight(x, count, packed, to + at);
  }
  /// Eight zeros of one row stay as they are, and draw nothing.
  __device__ void drop(std::int64_t row, std::int64_t eight, std::int64_t count,
                       float (&x)[kMasksPerBlock]) const {
    if (count >= kMasksPerBlock && all_zero(x)) return;
    const auto words = random_block(stream.of_row(row), static_cast<std::uint64_t>(eight));
#pragma unroll
    for (int p = 0; p < kMasksPerBlock; ++p) x[p] = dropout_keeps(words, p, threshold) ? x[p] * scale : 0.0f;
  }
};

template <bool kRelu>
void drop_eights(const Cuda& cuda, const char* name, const KeyedStream& stream, double rate,
                 ConstMatrixView<float, Cuda> from, float* to) {
  const bool packed = from.columns % 4 == 0 && device_rows::aligned(from.data, 4 * sizeof(float)) &&
                      device_rows::aligned(to, 4 * sizeof(float));
  for_each_in_rows(cuda, name, from.rows, (from.columns + kMasksPerBlock - 1) / kMasksPerBlock,
                   DropEights<kRelu>{stream, dropout_threshold(rate), keep_scale<float>(rate), from.columns,
                                     packed, from.data, to});
}

}  // namespace

template <class T>
void dropout(const Cuda& cuda, const KeyedStream& stream, double rate, ConstMatrixView<T, Cuda> in,
             Matrix<T, Cuda>& out) {
  out.resize(in.rows, in.columns);
  drop_eights<false>(cuda, "dropout", stream, rate, in, out.data.data());
}

template <class T>
void relu_dropout(const Cuda& cuda, const KeyedStream& stream, double rate, MatrixView<T, Cuda> h) {
  drop_eights<true>(cuda, "relu_dropout", stream, rate, h, h.data);
}

template <class T>
void relu_dropout_backward(const Cuda& cuda, double rate, ConstMatrixView<T, Cuda> h,
                           MatrixView<T, Cuda> gradient, Matrix<T, Cuda>* sums) {
  ESPALIER_CHECK(h.rows == gradient.rows && h.columns == gradient.columns, "[{}, {}] and [{}, {}]", h.rows,
                 h.columns, gradient.rows, gradient.columns);
  const T scale = keep_scale<T>(rate);
  update_and_sum(cuda, gradient, sums, [=] __device__(std::int64_t i, std::int64_t j, float d) {
    return h(i, j) > 0 ? d * scale : 0.0f;
  });
}

template <class T>
void scale_drawn_rows(const Cuda& cuda, const std::uint8_t* drawn, const std::int64_t* positions,
                      double weight, MatrixView<T, Cuda> rows) {
  const auto factor = static_cast<T>(weight);
  for_each_in_rows(cuda, "scale_drawn_rows", rows.rows, rows.columns,
                   [=] __device__(std::int64_t k, std::int64_t j) {
                     if (drawn[positions[k]] != 0) rows(k, j) *= factor;
                   });
}

template void dropout<float>(const Cuda&, const KeyedStream&, double, ConstMatrixView<float, Cuda>,
                             Matrix<float, Cuda>&);
template void relu_dropout<float>(const Cuda&, const KeyedStream&, double, MatrixView<float, Cuda>);
template void relu_dropout_backward<float>(const Cuda&, double, ConstMatrixView<float, Cuda>,
                                           MatrixView<float, Cuda>, Matrix<float, Cuda>*);
template void scale_drawn_rows<float>(const Cuda&, const std::uint8_t*, const std::int64_t*, double,
                                      MatrixView<float, Cuda>);

}  // namespace espalier
