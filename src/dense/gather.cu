// A group of lanes copies a row, each lane packs of neighbouring columns, so that a warp reads
// whole sectors of memory.
#include "espalier/dense/gather.hpp"

#include <type_traits>

#include "device_rows.hpp"
#include "espalier/base/device_array.hpp"
#include "espalier/base/error.hpp"

namespace espalier {
namespace {

using device_rows::Pack;

/// Where row k of a result comes from: from[ids[k] - first].
template <class S, class Id>
struct RowById {
  const S* from;
  const Id* ids;
  std::int64_t first, columns;
  __device__ const S* operator()(std::int64_t k) const { return from + (ids[k] - first) * columns; }
};

/// The same: from[source[k]] or own[~source[k]].
template <class S>
struct RowOfTwo {
  const S *from, *own;
  const std::int64_t* source;
  std::int64_t columns;
  __device__ const S* operator()(std::int64_t k) const {
    const auto place = source[k];
    return place < 0 ? own + ~place * columns : from + place * columns;
  }
};

template <class To, class S>
__device__ To converted(S x) {
  if constexpr (std::is_same_v<To, S>)
    return x;
  else
    return to_float(x);
}

/// Group k copies row k: `packs` packs of N elements, kLanes at a time.
template <int N, int kLanes, class RowOf, class To>
__global__ void __launch_bounds__(kBlockThreads)
    copy_packs(RowOf row_of, std::int64_t rows, std::int64_t packs, To* to) {
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * (kBlockThreads / kLanes) + thread / kLanes;
  if (row >= rows) return;
  const auto* const from_row = row_of(row);
  To* const to_row = to + row * packs * N;
#pragma unroll 4
  for (std::int64_t pack = thread % kLanes; pack < packs; pack += kLanes) {
    const auto read = device_rows::load<N>(from_row + pack * N);
    Pack<To, N> written;
#pragma unroll
    for (int k = 0; k < N; ++k) written.element[k] = converted<To>(read.element[k]);
    device_rows::store(to_row + pack * N, written);
  }
}

template <int N, int kLanes, class RowOf, class To>
void launch_copy(const Cuda& cuda, const RowOf& row_of, std::int64_t rows, std::int64_t packs, To* to) {
  launch(cuda, "gather", copy_packs<N, kLanes, RowOf, To>, dim3(blocks_for(rows, kBlockThreads / kLanes)),
         dim3(kBlockThreads), row_of, rows, packs, to);
}

/// With as many lanes as a narrow row has packs.
template <int N, class RowOf, class To>
void copy_with_packs(const Cuda& cuda, const RowOf& row_of, MatrixView<To, Cuda> to) {
  const std::int64_t packs = to.columns / N;
  if (packs <= 4) return launch_copy<N, 4>(cuda, row_of, to.rows, packs, to.data);
  if (packs <= 16) return launch_copy<N, 16>(cuda, row_of, to.rows, packs, to.data);
  launch_copy<N, 32>(cuda, row_of, to.rows, packs, to.data);
}

template <class S>
bool in_packs(ConstMatrixView<S, Cuda> matrix) {
  return matrix.columns % 4 == 0 && device_rows::aligned(matrix.data, 4 * sizeof(S));
}

}  // namespace

template <class S, class Id>
void copy_rows(const Cuda& cuda, ConstMatrixView<S, Cuda> from, const Id* ids, std::int64_t first,
               MatrixView<S, Cuda> to) {
  ESPALIER_CHECK(to.columns == from.columns, "{} columns -> {}", from.columns, to.columns);
  const RowById<S, Id> row_of = {from.data, ids, first, from.columns};
  in_packs<S>(from) && in_packs<S>(to) ? copy_with_packs<4>(cuda, row_of, to)
                                       : copy_with_packs<1>(cuda, row_of, to);
}

template <class S>
void gather_rows(const Cuda& cuda, ConstMatrixView<S, Cuda> from, ConstMatrixView<S, Cuda> own,
                 const std::int64_t* source, MatrixView<Gathered<S>, Cuda> to) {
  ESPALIER_CHECK(to.columns == from.columns && to.columns == own.columns, "{} and {} columns -> {}",
                 from.columns, own.columns, to.columns);
  const RowOfTwo<S> row_of = {from.data, own.data, source, from.columns};
  in_packs<S>(from) && in_packs<S>(own) && in_packs<Gathered<S>>(to) ? copy_with_packs<4>(cuda, row_of, to)
                                                                     : copy_with_packs<1>(cuda, row_of, to);
}

#define ESPALIER_INSTANTIATE(S)                                                                        \
  template void copy_rows<S>(const Cuda&, ConstMatrixView<S, Cuda>, const std::int32_t*, std::int64_t, \
                             MatrixView<S, Cuda>);                                                     \
  template void copy_rows<S>(const Cuda&, ConstMatrixView<S, Cuda>, const std::int64_t*, std::int64_t, \
                             MatrixView<S, Cuda>);                                                     \
  template void gather_rows<S>(const Cuda&, ConstMatrixView<S, Cuda>, ConstMatrixView<S, Cuda>,        \
                               const std::int64_t*, MatrixView<Gathered<S>, Cuda>);
ESPALIER_INSTANTIATE(float)
ESPALIER_INSTANTIATE(Half)
ESPALIER_INSTANTIATE(BFloat16)
#undef ESPALIER_INSTANTIATE
template void copy_rows<QuantisedWord>(const Cuda&, ConstMatrixView<QuantisedWord, Cuda>, const std::int32_t*,
                                       std::int64_t, MatrixView<QuantisedWord, Cuda>);
template void copy_rows<QuantisedWord>(const Cuda&, ConstMatrixView<QuantisedWord, Cuda>, const std::int64_t*,
                                       std::int64_t, MatrixView<QuantisedWord, Cuda>);

}  // namespace espalier
