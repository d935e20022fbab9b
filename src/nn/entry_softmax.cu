// A thread has a head of a row.
#include "entry_softmax.hpp"

#include "entry_softmax_rules.hpp"
#include "espalier/base/device_array.hpp"
#include "espalier/base/launch.hpp"

namespace espalier {

namespace {

/// Marks the weights of a head of a row that dropout takes, one after another.
template <class T>
__device__ void mark_dropped(RandomStream stream, std::int64_t row, std::uint32_t threshold, T* weights,
                             std::int64_t count, std::int64_t heads, std::int64_t h) {
  stream.row = static_cast<std::uint64_t>(row);
  for (std::int64_t at = h; at < count * heads; at += heads) {
    const auto words = random_block(stream, static_cast<std::uint64_t>(at / kMasksPerBlock));
    const int position = static_cast<int>(at % kMasksPerBlock);
    // Every place is known: an index into the words would put them on a stack.
#pragma unroll
    for (int k = 0; k < kMasksPerBlock; ++k)
      if (k == position) weights[at] = marked(weights[at], dropout_keeps(words, k, threshold));
  }
}

}  // namespace

template <class T>
void entry_softmax(const Cuda& cuda, const BlockView<Cuda>& block, SoftmaxOver over,
                   const Matrix<T, Cuda>& scores, const RandomStream& mask, double rate,
                   Matrix<T, Cuda>& weights) {
  const std::int64_t heads = scores.columns;
  weights.resize(scores.rows, heads);
  const auto* const indptr = block.indptr;
  const auto* const relations = block.relations;
  const T* const score = scores.data.data();
  T* const weight = weights.data.data();
  const std::uint32_t threshold = dropout_threshold(rate);
  for_each_in_rows(cuda, "entry_softmax", block.rows, heads, [=] __device__(std::int64_t i, std::int64_t h) {
    const auto begin = indptr[i], end = indptr[i + 1], base = indptr[0];
    for (auto e = begin; e < end;) {
      const auto next = part_end(relations, over.relations, e, end), first = (e - base) * heads + h;
      softmax_of_part(score + first, next - e, heads, static_cast<T>(over.slope), weight + first);
      e = next;
    }
    if (rate > 0) mark_dropped(mask, i, threshold, weight + (begin - base) * heads, end - begin, heads, h);
  });
}

template <class T>
void entry_softmax_backward(const Cuda& cuda, const BlockView<Cuda>& block, SoftmaxOver over,
                            const Matrix<T, Cuda>& scores, const Matrix<T, Cuda>& weights, double rate,
                            Matrix<T, Cuda>& gradients) {
  const std::int64_t heads = scores.columns;
  const auto* const indptr = block.indptr;
  const auto* const relations = block.relations;
  const T *const score = scores.data.data(), *const weight = weights.data.data();
  T* const gradient = gradients.data.data();
  const T scale = keep_scale<T>(rate);
  for_each_in_rows(cuda, "entry_softmax_backward", block.rows, heads,
                   [=] __device__(std::int64_t i, std::int64_t h) {
                     for (auto e = indptr[i]; e < indptr[i + 1];) {
                       const auto next = part_end(relations, over.relations, e, indptr[i + 1]),
                                  first = (e - indptr[0]) * heads + h;
                       softmax_of_part_backward(score + first, weight + first, next - e, heads,
                                                static_cast<T>(over.slope), scale, gradient + first);
                       e = next;
                     }
                   });
}

template void entry_softmax<float>(const Cuda&, const BlockView<Cuda>&, SoftmaxOver,
                                   const Matrix<float, Cuda>&, const RandomStream&, double,
                                   Matrix<float, Cuda>&);
template void entry_softmax_backward<float>(const Cuda&, const BlockView<Cuda>&, SoftmaxOver,
                                            const Matrix<float, Cuda>&, const Matrix<float, Cuda>&, double,
                                            Matrix<float, Cuda>&);

}  // namespace espalier
