// One thread copies a row.
#include "espalier/dense/gather.hpp"

#include <algorithm>

namespace espalier {

template void Matrix<float, Cpu>::resize(std::int64_t, std::int64_t);
namespace {

template <class S>
void copy_row(const S* from, Gathered<S>* to, std::int64_t columns) {
  if constexpr (std::is_same_v<S, Gathered<S>>)
    std::copy_n(from, columns, to);
  else
    to_floats(from, to, columns);
}

}  // namespace

template <class S, class Id>
void copy_rows(const Cpu& cpu, ConstMatrixView<S> from, const Id* ids, std::int64_t first, MatrixView<S> to) {
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
  for (std::int64_t k = 0; k < to.rows; ++k) std::copy_n(from.row(ids[k] - first), to.columns, to.row(k));
}

template <class S>
void gather_rows(const Cpu& cpu, ConstMatrixView<S> from, ConstMatrixView<S> own, const std::int64_t* source,
                 MatrixView<Gathered<S>> to) {
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
  for (std::int64_t k = 0; k < to.rows; ++k)
    copy_row(source[k] < 0 ? own.row(~source[k]) : from.row(source[k]), to.row(k), to.columns);
}

#define ESPALIER_INSTANTIATE(S)                                                                         \
  template void copy_rows<S>(const Cpu&, ConstMatrixView<S>, const std::int32_t*, std::int64_t,         \
                             MatrixView<S>);                                                            \
  template void copy_rows<S>(const Cpu&, ConstMatrixView<S>, const std::int64_t*, std::int64_t,         \
                             MatrixView<S>);                                                            \
  template void gather_rows<S>(const Cpu&, ConstMatrixView<S>, ConstMatrixView<S>, const std::int64_t*, \
                               MatrixView<Gathered<S>>);
ESPALIER_INSTANTIATE(float)
ESPALIER_INSTANTIATE(double)
ESPALIER_INSTANTIATE(Half)
#undef ESPALIER_INSTANTIATE
template void copy_rows<QuantisedWord>(const Cpu&, ConstMatrixView<QuantisedWord>, const std::int32_t*,
                                       std::int64_t, MatrixView<QuantisedWord>);
template void copy_rows<QuantisedWord>(const Cpu&, ConstMatrixView<QuantisedWord>, const std::int64_t*,
                                       std::int64_t, MatrixView<QuantisedWord>);

}  // namespace espalier
