// One thread copies a row.
#include "espalier/dense/gather.hpp"

#include <algorithm>

namespace espalier {

template <class S, class Id>
void copy_rows(const Cpu& cpu, ConstMatrixView<S> from, const Id* ids, std::int64_t first, MatrixView<S> to) {
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
  for (std::int64_t k = 0; k < to.rows; ++k) std::copy_n(from.row(ids[k] - first), to.columns, to.row(k));
}

template <class S>
void gather_rows(const Cpu& cpu, ConstMatrixView<S> from, ConstMatrixView<S> own, const std::int64_t* source,
                 MatrixView<float> to) {
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
  for (std::int64_t k = 0; k < to.rows; ++k)
    to_floats(source[k] < 0 ? own.row(~source[k]) : from.row(source[k]), to.row(k), to.columns);
}

#define ESPALIER_INSTANTIATE(S)                                                                         \
  template void copy_rows<S>(const Cpu&, ConstMatrixView<S>, const std::int32_t*, std::int64_t,         \
                             MatrixView<S>);                                                            \
  template void copy_rows<S>(const Cpu&, ConstMatrixView<S>, const std::int64_t*, std::int64_t,         \
                             MatrixView<S>);                                                            \
  template void gather_rows<S>(const Cpu&, ConstMatrixView<S>, ConstMatrixView<S>, const std::int64_t*, \
                               MatrixView<float>);
ESPALIER_INSTANTIATE(float)
ESPALIER_INSTANTIATE(Half)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
