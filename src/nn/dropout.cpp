#include "espalier/nn/dropout.hpp"

#include <algorithm>

#include "espalier/base/error.hpp"

namespace espalier {
namespace {

template <class T>
T keep_scale(double rate) {
  return static_cast<T>(1.0 / (1.0 - rate));
}

template <class T>
bool all_zero(const T* values, int count) {
  bool zero = true;
  for (int k = 0; k < count; ++k) zero &= values[k] == T{0};
  return zero;
}

/// One row, eight elements at a time; `out` may be `in`.
template <class T>
void drop_row(const RandomStream& stream, std::uint64_t threshold, T scale, const T* in, T* out, std::int64_t columns) {
  for (std::int64_t j = 0; j < columns; j += kMasksPerBlock) {
    const int count = static_cast<int>(std::min<std::int64_t>(kMasksPerBlock, columns - j));
    if (all_zero(in + j, count)) {
      std::fill(out + j, out + j + count, T{0});
      continue;
    }
    const auto words = random_block(stream, static_cast<std::uint64_t>(j / kMasksPerBlock));
    for (int k = 0; k < count; ++k) out[j + k] = dropout_keeps(words, k, threshold) ? in[j + k] * scale : T{0};
  }
}

template <class T>
void relu_row(T* h, std::int64_t columns) {
  for (std::int64_t j = 0; j < columns; ++j) h[j] = h[j] < T{0} ? T{0} : h[j];
}

/// The stream of one row of the mask.
RandomStream of_row(RandomStream stream, std::int64_t row) {
  stream.row = static_cast<std::uint64_t>(row);
  return stream;
}

}  // namespace

template <class T>
void dropout(const Cpu& cpu, const RandomStream& stream, double rate, ConstMatrixView<T> in, Matrix<T>& out) {
  out.resize(in.rows, in.columns);
  const std::uint64_t threshold = dropout_threshold(rate);
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (in.rows > 64)
  for (std::int64_t i = 0; i < in.rows; ++i)
    drop_row(of_row(stream, i), threshold, keep_scale<T>(rate), in.row(i), out.row(i), in.columns);
}

template <class T>
void relu_dropout(const Cpu& cpu, const RandomStream& stream, double rate, MatrixView<T> h) {
  const std::uint64_t threshold = dropout_threshold(rate);
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (h.rows > 64)
  for (std::int64_t i = 0; i < h.rows; ++i) {
    relu_row(h.row(i), h.columns);
    if (rate > 0) drop_row(of_row(stream, i), threshold, keep_scale<T>(rate), h.row(i), h.row(i), h.columns);
  }
}

template <class T>
void relu_dropout_backward(const Cpu& cpu, double rate, ConstMatrixView<T> h, MatrixView<T> gradient) {
  ESPALIER_CHECK(h.rows == gradient.rows && h.columns == gradient.columns, "[{}, {}] and [{}, {}]", h.rows, h.columns,
                 gradient.rows, gradient.columns);
  const T scale = keep_scale<T>(rate);
  const std::int64_t size = h.rows * h.columns;
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (size > 16384)
  for (std::int64_t e = 0; e < size; ++e) gradient.data[e] = h.data[e] > T{0} ? gradient.data[e] * scale : T{0};
}

#define ESPALIER_INSTANTIATE(T)                                                                       \
  template void dropout<T>(const Cpu&, const RandomStream&, double, ConstMatrixView<T>, Matrix<T>&);  \
  template void relu_dropout<T>(const Cpu&, const RandomStream&, double, MatrixView<T>);              \
  template void relu_dropout_backward<T>(const Cpu&, double, ConstMatrixView<T>, MatrixView<T>);
ESPALIER_INSTANTIATE(float)
ESPALIER_INSTANTIATE(double)

}  // namespace espalier
