#include "joined_rows.hpp"

#include "espalier/base/device_array.hpp"
#include "espalier/base/launch.hpp"

namespace espalier {

template <class T>
void join_rows(const Cuda& cuda, ConstMatrixView<T, Cuda> computed, ConstMatrixView<T, Cuda> cached,
               const std::int64_t* place, MatrixView<T, Cuda> joined) {
  for_each_in_rows(cuda, "join_rows", joined.rows, joined.columns,
                   [=] __device__(std::int64_t c, std::int64_t j) {
                     const auto at = place[c];
                     joined(c, j) = at >= 0 ? computed(at, j) : cached(~at, j);
                   });
}

template <class T>
void pick_rows(const Cuda& cuda, ConstMatrixView<T, Cuda> from, const std::int64_t* rows,
               MatrixView<T, Cuda> picked) {
  for_each_in_rows(cuda, "pick_rows", picked.rows, picked.columns,
                   [=] __device__(std::int64_t k, std::int64_t j) { picked(k, j) = from(rows[k], j); });
}

template void join_rows<float>(const Cuda&, ConstMatrixView<float, Cuda>, ConstMatrixView<float, Cuda>,
                               const std::int64_t*, MatrixView<float, Cuda>);
template void pick_rows<float>(const Cuda&, ConstMatrixView<float, Cuda>, const std::int64_t*,
                               MatrixView<float, Cuda>);

}  // namespace espalier
