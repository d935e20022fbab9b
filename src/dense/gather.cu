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

namespace {

template <class Word, int N, class Id>
void copy_words(const Cuda& cuda, const std::byte* from, std::int64_t row_bytes, const Id* ids,
                std::int64_t first, std::int64_t count, std::byte* to) {
  const auto words = row_bytes / std::int64_t{sizeof(Word)};
  const RowById<Word, Id> row_of = {reinterpret_cast<const Word*>(from), ids, first, words};
  copy_with_packs<N>(cuda, row_of, MatrixView<Word, Cuda>(count, words, reinterpret_cast<Word*>(to)));
}

}  // namespace

// By as many bytes at a time as the rows' width and the addresses allow.
template <class Id>
void copy_rows(const Cuda& cuda, const std::byte* from, std::int64_t row_bytes, const Id* ids,
               std::int64_t first, std::int64_t count, std::byte* to) {
  const auto in = [&](std::size_t bytes) {
    return row_bytes % static_cast<std::int64_t>(bytes) == 0 && device_rows::aligned(from, bytes) &&
           device_rows::aligned(to, bytes);
  };
  ESPALIER_CHECK(in(2), "rows of {} bytes", row_bytes);
  if (in(16)) return copy_words<std::uint32_t, 4>(cuda, from, row_bytes, ids, first, count, to);
  if (in(8)) return copy_words<std::uint16_t, 4>(cuda, from, row_bytes, ids, first, count, to);
  if (in(4)) return copy_words<std::uint32_t, 1>(cuda, from, row_bytes, ids, first, count, to);
  copy_words<std::uint16_t, 1>(cuda, from, row_bytes, ids, first, count, to);
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

template void copy_rows(const Cuda&, const std::byte*, std::int64_t, const std::int32_t*, std::int64_t,
                        std::int64_t, std::byte*);
template void copy_rows(const Cuda&, const std::byte*, std::int64_t, const std::int64_t*, std::int64_t,
                        std::int64_t, std::byte*);
template void gather_rows<float>(const Cuda&, ConstMatrixView<float, Cuda>, ConstMatrixView<float, Cuda>,
                                 const std::int64_t*, MatrixView<float, Cuda>);
template void gather_rows<Half>(const Cuda&, ConstMatrixView<Half, Cuda>, ConstMatrixView<Half, Cuda>,
                                const std::int64_t*, MatrixView<float, Cuda>);
template void gather_rows<BFloat16>(const Cuda&, ConstMatrixView<BFloat16, Cuda>,
                                    ConstMatrixView<BFloat16, Cuda>, const std::int64_t*,
                                    MatrixView<float, Cuda>);

}  // namespace espalier
