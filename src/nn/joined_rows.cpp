#include "joined_rows.hpp"

#include <algorithm>

namespace espalier {

template <class T>
void join_rows(const Cpu& cpu, ConstMatrixView<T> computed, ConstMatrixView<T> cached,
               const std::int64_t* place, MatrixView<T> joined) {
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (joined.rows > 256)
  for (std::int64_t c = 0; c < joined.rows; ++c)
    std::copy_n(place[c] >= 0 ? computed.row(place[c]) : cached.row(~place[c]), joined.columns,
                joined.row(c));
}

template <class T>
void pick_rows(const Cpu& cpu, ConstMatrixView<T> from, const std::int64_t* rows, MatrixView<T> picked) {
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (picked.rows > 256)
  for (std::int64_t k = 0; k < picked.rows; ++k)
    std::copy_n(from.row(rows[k]), picked.columns, picked.row(k));
}

#define ESPALIER_INSTANTIATE(T)                                                                       \
  template void join_rows<T>(const Cpu&, ConstMatrixView<T>, ConstMatrixView<T>, const std::int64_t*, \
                             MatrixView<T>);                                                          \
  template void pick_rows<T>(const Cpu&, ConstMatrixView<T>, const std::int64_t*, MatrixView<T>);
ESPALIER_INSTANTIATE(float)
ESPALIER_INSTANTIATE(double)

}  // namespace espalier
