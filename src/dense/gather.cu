// A group of lanes copies a row, each lane packs of neighbouring columns, so that a warp reads whole sectors of memory.
#include "espalier/dense/gather.hpp"

#include <type_traits>

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

/// Group g copies row ids[g] to row g: `packs` packs of N elements, kLanes at a time.
template <int N, int kLanes, class S, class To>
__global__ void __launch_bounds__(kBlockThreads)
    copy_packs(const S* from, const std::int64_t* ids, std::int64_t rows, std::int64_t packs, To* to) {
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * (kBlockThreads / kLanes) + thread / kLanes;
  if (row >= rows) return;
  const S* const from_row = from + ids[row] * packs * N;
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

template <int N, int kLanes, class S, class To>
void launch_copy(const Cuda& cuda, const S* from, std::span<const std::int64_t> ids, std::int64_t packs,
                 To* to) {
  const auto rows = std::ssize(ids);
  launch(cuda, "gather", copy_packs<N, kLanes, S, To>, dim3(blocks_for(rows, kBlockThreads / kLanes)),
         dim3(kBlockThreads), from, ids.data(), rows, packs, to);
}

/// With as many lanes as a narrow row has packs.
template <int N, class S, class To>
void copy_with_packs(const Cuda& cuda, const S* from, std::span<const std::int64_t> ids, std::int64_t columns,
                     To* to) {
  const std::int64_t packs = columns / N;
  if (packs <= 4) return launch_copy<N, 4>(cuda, from, ids, packs, to);
  if (packs <= 16) return launch_copy<N, 16>(cuda, from, ids, packs, to);
  launch_copy<N, 32>(cuda, from, ids, packs, to);
}

template <class S, class To>
void copy_any_rows(const Cuda& cuda, ConstMatrixView<S, Cuda> from, std::span<const std::int64_t> ids,
                   MatrixView<To, Cuda> to) {
  using device_rows::aligned;
  ESPALIER_CHECK(to.rows == std::ssize(ids) && to.columns == from.columns, "{} rows of [{}, {}] -> [{}, {}]",
                 ids.size(), from.rows, from.columns, to.rows, to.columns);
  const bool packed =
      from.columns % 4 == 0 && aligned(from.data, 4 * sizeof(S)) && aligned(to.data, 4 * sizeof(To));
  (packed ? copy_with_packs<4, S, To> : copy_with_packs<1, S, To>)(cuda, from.data, ids, to.columns, to.data);
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
