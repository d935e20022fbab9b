// Y = B X on a GPU: a gather, so no atomics. Bound by how fast rows of X come from memory.
//
// A group of lanes computes a strip of one row of Y: each lane has up to two packs of neighbouring columns, whose sums
// stay in registers while the row's entries pass by. The columns and values of four entries are read ahead, then their
// four rows of X are on their way at once, and are added in the order of the entries. Each product and each sum is
// rounded by itself, as on the CPU: the same bits.
#include "espalier/dense/spmm.hpp"

#include <algorithm>

#include "device_rows.hpp"
#include "espalier/base/device_array.hpp"
#include "espalier/base/error.hpp"

namespace espalier {
namespace {

using device_rows::Pack;

constexpr int kAhead = 4;  // entries whose rows are read at once

/// The rows of X that columns name: row ids[c], or row c where there are no ids.
template <class S>
struct Source {
  const S* data;
  std::int64_t columns;
  const std::int64_t* ids;

  __device__ const S* row(std::int32_t column) const {
    return data + (ids == nullptr ? static_cast<std::int64_t>(column) : ids[column]) * columns;
  }
};

/// Some entries of a row; `count` of them are there.
template <class S>
struct Entries {
  const S* rows[kAhead];
  float values[kAhead];
  int count;

  __device__ void read(const DeviceBlock& block, const Source<S>& x, std::int64_t begin, std::int64_t end) {
    count = end - begin < kAhead ? static_cast<int>(end - begin) : kAhead;
#pragma unroll
    for (int e = 0; e < kAhead; ++e) {
      if (e >= count) break;
      rows[e] = x.row(block.indices[begin + e]);
      values[e] = block.values == nullptr ? 1.0f : block.values[begin + e];
    }
  }
};

/// sums += value * x, element by element.
template <class S, int N>
__device__ void add(float value, const Pack<S, N>& x, float (&sums)[N]) {
#pragma unroll
  for (int k = 0; k < N; ++k) sums[k] += value * to_float(x.element[k]);
}

/// How the lanes of a group share a strip of kLanes * kPacks packs of N elements.
template <int N, int kLanes, int kPacks>
struct Strip {
  static constexpr int kElements = N * kLanes * kPacks;
  /// The first column of a lane's pack p.
  __device__ static std::int64_t column(int p) {
    return static_cast<std::int64_t>(blockIdx.y) * kElements +
           (p * kLanes + static_cast<int>(threadIdx.x) % kLanes) * N;
  }
};

template <class S, int N, int kLanes, int kPacks>
__global__ void __launch_bounds__(kBlockThreads)
    multiply_rows(DeviceBlock block, Source<S> x, float* y, bool accumulate) {
  using Part = Strip<N, kLanes, kPacks>;
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * (kBlockThreads / kLanes) +
                           static_cast<int>(threadIdx.x) / kLanes;
  if (row >= block.rows) return;
  float* const to = y + row * x.columns;
  float sums[kPacks][N] = {};
  if (accumulate)
#pragma unroll
    for (int p = 0; p < kPacks; ++p)
      if (Part::column(p) < x.columns) {
        const auto before = device_rows::load<N>(to + Part::column(p));
#pragma unroll
        for (int k = 0; k < N; ++k) sums[p][k] = before.element[k];
      }
  const std::int64_t end = block.indptr[row + 1];
  std::int64_t begin = block.indptr[row];
  Entries<S> now, next;
  next.read(block, x, begin, end);
  for (; begin < end; begin += kAhead) {
    now = next;
    next.read(block, x, begin + kAhead < end ? begin + kAhead : end, end);
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const std::int64_t column = Part::column(p);
      if (column >= x.columns) continue;
      Pack<S, N> packs[kAhead] = {};
#pragma unroll
      for (int e = 0; e < kAhead; ++e)
        if (e < now.count) packs[e] = device_rows::load<N>(now.rows[e] + column);
#pragma unroll
      for (int e = 0; e < kAhead; ++e)
        if (e < now.count) add(now.values[e], packs[e], sums[p]);
    }
  }
#pragma unroll
  for (int p = 0; p < kPacks; ++p)
    if (Part::column(p) < x.columns) {
      Pack<float, N> result;
#pragma unroll
      for (int k = 0; k < N; ++k) result.element[k] = sums[p][k];
      device_rows::store(to + Part::column(p), result);
    }
}

template <class S, int N, int kLanes, int kPacks>
void launch_strips(const Cuda& cuda, const DeviceBlock& block, const Source<S>& x, float* y, Update update) {
  const dim3 grid(blocks_for(block.rows, kBlockThreads / kLanes),
                  blocks_for(x.columns, Strip<N, kLanes, kPacks>::kElements));
  launch(cuda, "spmm", multiply_rows<S, N, kLanes, kPacks>, grid, dim3(kBlockThreads), block, x, y,
         update == Update::kAccumulate);
}

/// The narrowest group that has a row in one strip; 32 lanes with two packs each for the widest.
template <class S, int N>
void multiply_packs(const Cuda& cuda, const DeviceBlock& block, const Source<S>& x, float* y, Update update) {
  const std::int64_t packs = (x.columns + N - 1) / N;
  if (packs <= 4) return launch_strips<S, N, 4, 1>(cuda, block, x, y, update);
  if (packs <= 8) return launch_strips<S, N, 8, 1>(cuda, block, x, y, update);
  if (packs <= 16) return launch_strips<S, N, 16, 1>(cuda, block, x, y, update);
  if (packs <= 32) return launch_strips<S, N, 32, 1>(cuda, block, x, y, update);
  launch_strips<S, N, 32, 2>(cuda, block, x, y, update);
}

template <class S>
void multiply(const Cuda& cuda, const DeviceBlock& block, const Source<S>& x, float* y, Update update) {
  using device_rows::aligned;
  if (x.columns % 4 == 0 && aligned(x.data, 4 * sizeof(S)) && aligned(y, 4 * sizeof(float)))
    return multiply_packs<S, 4>(cuda, block, x, y, update);
  multiply_packs<S, 1>(cuda, block, x, y, update);
}

}  // namespace

template <class T>
void spmm(const Cuda& cuda, const DeviceBlock& block, ConstMatrixView<T, Cuda> x, MatrixView<T, Cuda> y,
          Update update) {
  ESPALIER_CHECK(block.columns == x.rows && block.rows == y.rows && x.columns == y.columns,
                 "[{}, {}] [{}, {}] -> [{}, {}]", block.rows, block.columns, x.rows, x.columns, y.rows,
                 y.columns);
  multiply(cuda, block, Source<T>{x.data, x.columns, nullptr}, y.data, update);
}

template <class S>
void spmm_gathered(const Cuda& cuda, const DeviceBlock& block, std::span<const std::int64_t> ids,
                   ConstMatrixView<S, Cuda> x, MatrixView<float, Cuda> y, Update update) {
  ESPALIER_CHECK(block.columns == std::ssize(ids) && block.rows == y.rows && x.columns == y.columns,
                 "[{}, {}] {} rows of [{}, {}] -> [{}, {}]", block.rows, block.columns, ids.size(), x.rows,
                 x.columns, y.rows, y.columns);
  multiply(cuda, block, Source<S>{x.data, x.columns, ids.data()}, y.data, update);
}

template void spmm<float>(const Cuda&, const DeviceBlock&, ConstMatrixView<float, Cuda>,
                          MatrixView<float, Cuda>, Update);
#define ESPALIER_INSTANTIATE(S)                                                                  \
  template void spmm_gathered<S>(const Cuda&, const DeviceBlock&, std::span<const std::int64_t>, \
                                 ConstMatrixView<S, Cuda>, MatrixView<float, Cuda>, Update);
ESPALIER_INSTANTIATE(float)
ESPALIER_INSTANTIATE(Half)
ESPALIER_INSTANTIATE(BFloat16)

}  // namespace espalier
