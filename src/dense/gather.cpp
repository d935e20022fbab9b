// One thread copies a row.
#include "espalier/dense/gather.hpp"

#include <algorithm>

namespace espalier {

template void Matrix<float, Cpu>::resize(std::int64_t, std::int64_t);

template <class Id>
void copy_rows(const Cpu& cpu, const std::byte* from, std::int64_t row_bytes, const Id* ids,
               std::int64_t first, std::int64_t count, std::byte* to) {
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
  for (std::int64_t k = 0; k < count; ++k)
    std::copy_n(from + (ids[k] - first) * row_bytes, row_bytes, to + k * row_bytes);
}

template <class S>
void gather_rows(const Cpu& cpu, ConstMatrixView<S> from, ConstMatrixView<S> own, const std::int64_t* source,
                 MatrixView<Gathered<S>> to) {
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
  for (std::int64_t k = 0; k < to.rows; ++k)
    std::copy_n(source[k] < 0 ? own.row(~source[k]) : from.row(source[k]), to.columns, to.row(k));
}

template void copy_rows(const Cpu&, const std::byte*, std::int64_t, const std::int32_t*, std::int64_t,
                        std::int64_t, std::byte*);
template void copy_rows(const Cpu&, const std::byte*, std::int64_t, const std::int64_t*, std::int64_t,
                        std::int64_t, std::byte*);
template void gather_rows<float>(const Cpu&, ConstMatrixView<float>, ConstMatrixView<float>,
                                 const std::int64_t*, MatrixView<float>);
template void gather_rows<double>(const Cpu&, ConstMatrixView<double>, ConstMatrixView<double>,
                                  const std::int64_t*, MatrixView<double>);

}  // namespace espalier
