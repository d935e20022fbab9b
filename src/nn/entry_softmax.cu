// A thread has a head of a row.
#include "entry_softmax.hpp"

#include "espalier/base/device_array.hpp"
#include "espalier/base/launch.hpp"

namespace espalier {

template <class T>
void entry_softmax(const Cuda& cuda, const BlockView<Cuda>& block, SoftmaxOver over,
                   const Matrix<T, Cuda>& scores, const KeyedStream& mask, double rate,
                   Matrix<T, Cuda>& weights) {
  const std::int64_t heads = scores.columns;
  weights.resize(scores.rows, heads);
  const auto* const indptr = block.indptr;
  const std::uint8_t* const relations = block.relations;
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
    if (rate <= 0) return;
    T* const row = weight + (begin - base) * heads;
    for (std::int64_t at = h; at < (end - begin) * heads; at += heads)
      row[at] = marked(row[at], keeps_weight(mask, i, threshold, at));
  });
}

template void entry_softmax<float>(const Cuda&, const BlockView<Cuda>&, SoftmaxOver,
                                   const Matrix<float, Cuda>&, const KeyedStream&, double,
                                   Matrix<float, Cuda>&);

}  // namespace espalier
