// A group of lanes copies a row, each lane a pack of neighbouring columns at a time, so that a warp reads whole sectors.
#include "espalier/dense/gather.hpp"

#include <algorithm>

#include "device_rows.hpp"
#include "espalier/base/device_array.hpp"
#include "espalier/base/error.hpp"

namespace espalier {
namespace {

using device_rows::Pack;

template <class To, class S>
__device__ To converted(S x) {
  if constexpr (std::is_same_v<To, S>)
    return x;
  else
    return to_float(x);
}

/// Thread t copies pack t of the result: of row t / packs.
template <int N, class S, class To>
void copy_packs(const Cuda& cuda, const S* from, const std::int64_t* ids, std::int64_t rows,
                std::int64_t columns, To* to) {
  const std::int64_t packs = columns / N;
  for_each(cuda, "gather", rows * packs, [=] __device__(std::int64_t t) {
    const std::int64_t row = t / packs, column = t % packs * N;
    const auto read = device_rows::load<N>(from + ids[row] * columns + column);
    Pack<To, N> written;
#pragma unroll
    for (int k = 0; k < N; ++k) written.element[k] = converted<To>(read.element[k]);
    device_rows::store(to + row * columns + column, written);
  });
}

template <class S, class To>
void copy_any_rows(const Cuda& cuda, ConstMatrixView<S, Cuda> from, std::span<const std::int64_t> ids,
                   MatrixView<To, Cuda> to) {
  ESPALIER_CHECK(to.rows == std::ssize(ids) && to.columns == from.columns, "{} rows of [{}, {}] -> [{}, {}]",
                 ids.size(), from.rows, from.columns, to.rows, to.columns);
  const bool packed = from.columns % 4 == 0 && device_rows::aligned(from.data, 4 * sizeof(S)) &&
                      device_rows::aligned(to.data, 4 * sizeof(To));
  (packed ? copy_packs<4, S, To> : copy_packs<1, S, To>)(cuda, from.data, ids.data(), to.rows, to.columns,
                                                         to.data);
}

}  // namespace

template <class S>
void gather_rows(const Cuda& cuda, ConstMatrixView<S, Cuda> from, std::span<const std::int64_t> ids,
                 MatrixView<float, Cuda> to) {
  copy_any_rows(cuda, from, ids, to);
}

template <class S>
void copy_rows(const Cuda& cuda, ConstMatrixView<S, Cuda> from, std::span<const std::int64_t> ids,
               MatrixView<S, Cuda> to) {
  copy_any_rows(cuda, from, ids, to);
}

#define ESPALIER_INSTANTIATE(S)                                                                      \
  template void gather_rows<S>(const Cuda&, ConstMatrixView<S, Cuda>, std::span<const std::int64_t>, \
                               MatrixView<float, Cuda>);                                             \
  template void copy_rows<S>(const Cuda&, ConstMatrixView<S, Cuda>, std::span<const std::int64_t>,   \
                             MatrixView<S, Cuda>);
ESPALIER_INSTANTIATE(float)
ESPALIER_INSTANTIATE(Half)
ESPALIER_INSTANTIATE(BFloat16)

}  // namespace espalier
