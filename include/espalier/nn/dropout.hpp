// ReLU and inverted dropout (Srivastava et al., JMLR 2014): an element is dropped with probability
// `rate`, the others are multiplied by 1 / (1 - rate), so expectations stay.
//
// The mask is a function of (seed, epoch, batch, layer, row, column) and of nothing else: element j
// of a row takes 16 bits of the row's random stream, eight elements per block (those of block j /
// 8, word after word, low half first), and is dropped if they are below t = round(2^16 rate). The
// rate is t / 2^16, as kept elements are scaled. No mask is stored: after ReLU and dropout an
// element is positive exactly if it was positive and kept, which is what the backward pass asks.
#pragma once

#include "espalier/base/execution.hpp"
#include "espalier/base/philox.hpp"
#include "espalier/dense/paired_rows.hpp"
#include "espalier/nn/views.hpp"

namespace espalier {

inline constexpr int kMasksPerBlock = 8;

/// Elements whose 16 bits are below it are dropped; below 2^16.
ESPALIER_HD inline std::uint32_t dropout_threshold(double rate) {
  const double scaled = rate * 0x1p16 + 0.5;
  return scaled < 0xffffu ? static_cast<std::uint32_t>(scaled) : 0xffffu;
}

/// Is element `position` (0 .. 7) of the eight that `words` decides kept?
ESPALIER_HD inline bool dropout_keeps(const RandomBlock& words, int position, std::uint32_t threshold) {
  return (words.v[position / 2] >> (position % 2 * 16) & 0xffffu) >= threshold;
}

/// What kept elements are multiplied by.
template <class T>
ESPALIER_HD inline T keep_scale(double rate) {
  return static_cast<T>(0x1p16 / (0x1p16 - dropout_threshold(rate)));
}

/// What dropout makes of element `column` of a row, which `stream` names.
template <class T>
ESPALIER_HD inline T after_dropout(const KeyedStream& stream, std::uint32_t threshold, T scale,
                                   std::int64_t column, T x) {
  if (x == 0) return x;
  const auto words = random_block(stream, static_cast<std::uint64_t>(column / kMasksPerBlock));
  return dropout_keeps(words, static_cast<int>(column % kMasksPerBlock), threshold) ? x * scale : T{0};
}

/// out = dropout(in), resized. `stream` names the mask but for its row, which is the row of the
/// matrix. Eight zeros in a row cost no random numbers: sparse features stay cheap.
template <class T>
void dropout(const Cpu&, const KeyedStream& stream, double rate, ConstMatrixView<T> in, Matrix<T>& out);
template <class T>
void dropout(const Cuda&, const KeyedStream& stream, double rate, ConstMatrixView<T, Cuda> in,
             Matrix<T, Cuda>& out);

/// out = the pairs of dropout of what `in` stands for, resized.
template <class T, class Space>
void dropout_of_pairs(const Space&, const KeyedStream& stream, double rate,
                      const PairedRows<T, std::type_identity_t<Space>>& in, MatrixOn<Space, T>& out);

/// h = dropout(relu(h)). With rate 0 it is ReLU alone, and draws nothing. Keeps NaN, so that a
/// diverged run shows.
template <class T>
void relu_dropout(const Cpu&, const KeyedStream& stream, double rate, MatrixView<T> h);
template <class T>
void relu_dropout(const Cuda&, const KeyedStream& stream, double rate, MatrixView<T, Cuda> h);

/// gradient = gradient * [h > 0] / (1 - rate), where h is what relu_dropout returned. Unless it is
/// null, `sums` [1, columns] becomes the sums of what the gradient then is over its rows, added in
/// double: the gradient of a bias that was added before.
template <class T>
void relu_dropout_backward(const Cpu&, double rate, ConstMatrixView<T> h, MatrixView<T> gradient,
                           Matrix<T>* sums = nullptr);
template <class T>
void relu_dropout_backward(const Cuda&, double rate, ConstMatrixView<T, Cuda> h, MatrixView<T, Cuda> gradient,
                           Matrix<T, Cuda>* sums = nullptr);

/// Gradients of rows that a draw has chosen: rows(k, :) *= weight where drawn[positions[k]] is not
/// 0; positions [rows.rows]; memory of the space. The host does not wait.
template <class T>
void scale_drawn_rows(const Cpu&, const std::uint8_t* drawn, const std::int64_t* positions, double weight,
                      MatrixView<T> rows);
template <class T>
void scale_drawn_rows(const Cuda&, const std::uint8_t* drawn, const std::int64_t* positions, double weight,
                      MatrixView<T, Cuda> rows);

}  // namespace espalier
