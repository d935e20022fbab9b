#include "espalier/nn/dropout.hpp"

#include <algorithm>
#include <bit>
#include <type_traits>

#include "espalier/base/error.hpp"
#include "espalier/base/random_blocks.hpp"
#include "row_sum.hpp"

namespace espalier {
namespace {

/// Eight of something; on a machine with narrower vectors the compiler splits them.
template <class T>
struct EightOf {
  typedef T type __attribute__((vector_size(kMasksPerBlock * sizeof(T))));
};
template <class T>
using Eight = typename EightOf<T>::type;
template <class T>
using IntegerLike = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

static_assert(std::endian::native == std::endian::little,
              "the eight 16-bit halves of four words lie in ascending order");

/// dropout_keeps for eight elements at once and without branches, since a random mask
/// predicts badly.
template <class T>
void drop_eight(const std::uint32_t* words, std::uint32_t threshold, T scale, const T* in, T* out) {
  Eight<std::uint16_t> bits;
  Eight<T> x;
  __builtin_memcpy(&bits, words, sizeof bits);
  __builtin_memcpy(&x, in, sizeof x);
  // All bits or none.
  const auto kept =
      __builtin_convertvector(bits >= static_cast<std::uint16_t>(threshold), Eight<IntegerLike<T>>);
  const auto masked = (Eight<IntegerLike<T>>)(x * scale) & kept;
  __builtin_memcpy(out, &masked, sizeof masked);
}

/// gradient = gradient * scale where h > 0, else 0; without branches, for the same reason.
template <class T>
void gate_eight(const T* h, T scale, T* gradient) {
  Eight<T> activation, g;
  __builtin_memcpy(&activation, h, sizeof activation);
  __builtin_memcpy(&g, gradient, sizeof g);
  const auto open = __builtin_convertvector(activation > T{0}, Eight<IntegerLike<T>>);
  const auto gated = (Eight<IntegerLike<T>>)(g * scale) & open;
  __builtin_memcpy(gradient, &gated, sizeof gated);
}

/// Are eight elements 0 or -0?
template <class T>
bool all_zero(const T* values) {
  std::uint64_t words[sizeof(Eight<T>) / 8], any = 0;
  __builtin_memcpy(words, values, sizeof words);
  for (const std::uint64_t word : words) any |= word;
  constexpr std::uint64_t kSigns = sizeof(T) == 4 ? 0x8000000080000000u : 0x8000000000000000u;
  return (any & ~kSigns) == 0;
}

/// One row on its way through dropout; `out` may be `in`.
template <class T>
struct RowDropout {
  KeyedStream stream;
  std::uint32_t threshold;
  T scale;
  const T* in;
  T* out;

  /// The first `count` <= kBlocksAtOnce eights that `counters` name.
  void drop(const BlockCounters& counters, int count) const {
    alignas(64) std::uint32_t words[4 * kBlocksAtOnce];
    random_blocks(stream.key, counters, words);
    for (int k = 0; k < count; ++k) {
      const std::uint64_t j = counters.block[k] * kMasksPerBlock;
      drop_eight(words + 4 * k, threshold, scale, in + j, out + j);
    }
  }
  /// The last `count` < kMasksPerBlock elements, from column j on.
  void drop_rest(std::int64_t j, std::int64_t count) const {
    T eight[kMasksPerBlock] = {};
    std::copy_n(in + j, count, eight);
    const auto words = random_block(stream, static_cast<std::uint64_t>(j / kMasksPerBlock));
    drop_eight(words.v, threshold, scale, eight, eight);
    std::copy_n(eight, count, out + j);
  }
  void run(std::int64_t columns) const {
    BlockCounters waiting;
    std::ranges::fill(waiting.row, stream.row);
    std::ranges::fill(waiting.batch, stream.batch);
    int count = 0;
    std::int64_t j = 0;
    for (; j + kMasksPerBlock <= columns; j += kMasksPerBlock) {
      if (all_zero(in + j)) {
        std::copy_n(in + j, kMasksPerBlock, out + j);
        continue;
      }
      waiting.block[count++] = static_cast<std::uint64_t>(j / kMasksPerBlock);
      if (count < kBlocksAtOnce) continue;
      drop(waiting, count);
      count = 0;
    }
    if (count > 0) drop(waiting, count);
    if (j < columns) drop_rest(j, columns - j);
  }
};

template <class T>
void relu_row(T* h, std::int64_t columns) {
  for (std::int64_t j = 0; j < columns; ++j) h[j] = h[j] < T{0} ? T{0} : h[j];
}

}  // namespace

template <class T>
void dropout(const Cpu& cpu, const KeyedStream& stream, double rate, ConstMatrixView<T> in, Matrix<T>& out) {
  out.resize(in.rows, in.columns);
  const std::uint32_t threshold = dropout_threshold(rate);
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (in.rows > 64)
  for (std::int64_t i = 0; i < in.rows; ++i)
    RowDropout<T>{stream.of_row(i), threshold, keep_scale<T>(rate), in.row(i), out.row(i)}.run(in.columns);
}

template <class T>
void relu_dropout(const Cpu& cpu, const KeyedStream& stream, double rate, MatrixView<T> h) {
  const std::uint32_t threshold = dropout_threshold(rate);
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (h.rows > 64)
  for (std::int64_t i = 0; i < h.rows; ++i) {
    relu_row(h.row(i), h.columns);
    if (rate > 0)
      RowDropout<T>{stream.of_row(i), threshold, keep_scale<T>(rate), h.row(i), h.row(i)}.run(h.columns);
  }
}

template <class T>
void relu_dropout_backward(const Cpu& cpu, double rate, ConstMatrixView<T> h, MatrixView<T> gradient,
                           Matrix<T>* sums) {
  ESPALIER_CHECK(h.rows == gradient.rows && h.columns == gradient.columns, "[{}, {}] and [{}, {}]", h.rows,
                 h.columns, gradient.rows, gradient.columns);
  const T scale = keep_scale<T>(rate);
  const std::int64_t size = h.rows * h.columns;
  const std::int64_t whole = size / kMasksPerBlock * kMasksPerBlock;
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (size > 16384)
  for (std::int64_t e = 0; e < whole; e += kMasksPerBlock) gate_eight(h.data + e, scale, gradient.data + e);
  for (auto e = whole; e < size; ++e) gradient.data[e] = h.data[e] > T{0} ? gradient.data[e] * scale : T{0};
  if (sums != nullptr) sum_rows<T>(cpu, gradient, *sums);
}

template <class T>
void scale_drawn_rows(const Cpu& cpu, const std::uint8_t* drawn, const std::int64_t* positions, double weight,
                      MatrixView<T> rows) {
  const auto factor = static_cast<T>(weight);
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (rows.rows > 256)
  for (std::int64_t k = 0; k < rows.rows; ++k)
    if (drawn[positions[k]] != 0)
      for (std::int64_t j = 0; j < rows.columns; ++j) rows(k, j) *= factor;
}

#define ESPALIER_INSTANTIATE(T)                                                                     \
  template void dropout<T>(const Cpu&, const KeyedStream&, double, ConstMatrixView<T>, Matrix<T>&); \
  template void relu_dropout<T>(const Cpu&, const KeyedStream&, double, MatrixView<T>);             \
  template void scale_drawn_rows<T>(const Cpu&, const std::uint8_t*, const std::int64_t*, double,   \
                                    MatrixView<T>);                                                 \
  template void relu_dropout_backward<T>(const Cpu&, double, ConstMatrixView<T>, MatrixView<T>, Matrix<T>*);
ESPALIER_INSTANTIATE(float)
ESPALIER_INSTANTIATE(double)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
