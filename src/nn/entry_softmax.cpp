// A thread has whole rows.
#include "entry_softmax.hpp"

namespace espalier {

namespace {

/// Calls use(first entry, entries) for each part of row i; entries counted from the block's first.
template <class Use>
void for_each_part(const BlockView<Cpu>& block, bool by_relation, std::int64_t i, const Use& use) {
  for (auto e = block.row_begin(i); e < block.row_end(i);) {
    const auto end = part_end(block.relations, by_relation, e, block.row_end(i));
    use(e - block.indptr[0], end - e);
    e = end;
  }
}

}  // namespace

template <class T>
void entry_softmax(const Cpu& cpu, const BlockView<Cpu>& block, SoftmaxOver over, const Matrix<T>& scores,
                   const KeyedStream& mask, double rate, Matrix<T>& weights) {
  const std::int64_t heads = scores.columns;
  const std::uint32_t threshold = dropout_threshold(rate);
  weights.resize(scores.rows, heads);
#pragma omp parallel for num_threads(cpu.threads) schedule(dynamic, 64) if (block.entries() > 1024)
  for (std::int64_t i = 0; i < block.rows; ++i) {
    for_each_part(block, over.relations, i, [&](std::int64_t first, std::int64_t count) {
      for (std::int64_t h = 0; h < heads; ++h)
        softmax_of_part(scores.row(first) + h, count, heads, static_cast<T>(over.slope),
                        weights.row(first) + h);
    });
    if (rate > 0)
      mark_dropped(mask, i, threshold, weights.row(block.row_begin(i) - block.indptr[0]),
                   block.row_size(i) * heads);
  }
}

#define ESPALIER_INSTANTIATE(T)                                                                    \
  template void entry_softmax<T>(const Cpu&, const BlockView<Cpu>&, SoftmaxOver, const Matrix<T>&, \
                                 const KeyedStream&, double, Matrix<T>&);
ESPALIER_INSTANTIATE(float)
ESPALIER_INSTANTIATE(double)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
