// Y = B X on a GPU: a gather, so no atomics. Bound by how fast rows of X come from memory.
//
// A group of lanes computes a strip of one row of Y: each lane has one or two packs of neighbouring
// columns, whose sums stay in registers while the row's entries pass by. Four rows of X are on
// their way at once, or one; meanwhile the columns and values of the next entries are read. They
// are added in the order of the entries, each product and each sum rounded by itself, as on the
// CPU: the same bits.
#include "espalier/dense/spmm.hpp"

#include <algorithm>

#include "device_rows.hpp"
#include "espalier/base/device_array.hpp"
#include "espalier/base/error.hpp"
#include "spmm_by_cusparse.hpp"

namespace espalier {
namespace {

using device_rows::Pack;

struct Source {
  const float* data;
  std::int64_t columns;

  __device__ const float* row(std::int32_t column) const {
    return data + static_cast<std::int64_t>(column) * columns;
  }
};

/// Up to kAhead entries of a row. Reads go to the last entry again where there are fewer, so that
/// all are on their way at once, without a branch between them.
template <int kAhead>
struct Entries {
  const float* rows[kAhead];
  float values[kAhead];
  int count;

  /// Those from `begin` < `end` on.
  __device__ void read(const BlockView<Cuda>& block, const Source& x, std::int64_t begin, std::int64_t end) {
    count = end - begin < kAhead ? static_cast<int>(end - begin) : kAhead;
    std::int32_t columns[kAhead];
#pragma unroll
    for (int e = 0; e < kAhead; ++e) {
      const std::int64_t at = begin + (e < count ? e : count - 1);
      columns[e] = block.indices[at];
      values[e] = block.values == nullptr ? 1.0f : block.values[at];
    }
#pragma unroll
    for (int e = 0; e < kAhead; ++e) rows[e] = x.row(columns[e]);
  }
};

/// What a lane computes of a row of Y: packs of N neighbouring columns, kPacks of them, kLanes
/// packs apart.
template <int N, int kLanes, int kPacks>
struct Sums {
  static constexpr int kStrip = N * kLanes * kPacks;  ///< columns of the whole group

  std::int64_t first, columns;  ///< of the lane's first pack; of Y
  float sums[kPacks][N] = {};

  __device__ Sums(int strip, int lane, std::int64_t columns_)
      : first(static_cast<std::int64_t>(strip) * kStrip + lane * N), columns(columns_) {}
  __device__ std::int64_t column(int p) const { return first + p * (kLanes * N); }
  __device__ bool has(int p) const { return column(p) < columns; }

  __device__ void read(const float* row) {
#pragma unroll
    for (int p = 0; p < kPacks; ++p)
      if (has(p)) {
        const auto pack = device_rows::load<N>(row + column(p));
#pragma unroll
        for (int k = 0; k < N; ++k) sums[p][k] = pack.element[k];
      }
  }
  __device__ void write(float* row) const {
#pragma unroll
    for (int p = 0; p < kPacks; ++p)
      if (has(p)) {
        Pack<float, N> pack;
#pragma unroll
        for (int k = 0; k < N; ++k) pack.element[k] = sums[p][k];
        device_rows::store(row + column(p), pack);
      }
  }
  template <int kAhead>
  __device__ void load(const Entries<kAhead>& entries, Pack<float, N> (&x)[kPacks][kAhead]) const {
#pragma unroll
    for (int p = 0; p < kPacks; ++p)
#pragma unroll
      for (int e = 0; e < kAhead; ++e)
        if (has(p) && e < entries.count) x[p][e] = device_rows::load<N>(entries.rows[e] + column(p));
  }
  /// In the order of the entries.
  template <int kAhead>
  __device__ void add(const Entries<kAhead>& entries, const Pack<float, N> (&x)[kPacks][kAhead]) {
#pragma unroll
    for (int p = 0; p < kPacks; ++p)
#pragma unroll
      for (int e = 0; e < kAhead; ++e)
        if (e < entries.count)
#pragma unroll
          for (int k = 0; k < N; ++k) sums[p][k] += entries.values[e] * x[p][e].element[k];
  }
};

/// Blocks of a multiprocessor for lanes of so many columns, each of them with `ahead` rows on their
/// way. Told no number, ptxas makes room for one more block by spilling, where a few registers
/// are missing.
constexpr int blocks_at_once(int columns, int ahead) {
  if (ahead == 1) return columns <= 4 ? 6 : 5;
  return columns == 1 ? 6 : columns <= 4 ? 4 : columns <= 8 ? 3 : 2;
}

/// Where rows of Y go: `stride` numbers apart. Beside them, unless `own` is null, the first
/// rows of X.
struct Target {
  float* data;
  std::int64_t stride;
  float* own = nullptr;
};

/// Group g computes strip blockIdx.y of row g, kAhead entries at a time: where rows have hardly
/// more than one, as those of B^T, one at a time leaves room for more groups.
template <int N, int kLanes, int kPacks, int kAhead>
__global__ void __launch_bounds__(kBlockThreads, blocks_at_once(N* kPacks, kAhead))
    multiply_rows(BlockView<Cuda> block, Source x, Target y, bool accumulate) {
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * (kBlockThreads / kLanes) + thread / kLanes;
  if (row >= block.rows) return;
  Sums<N, kLanes, kPacks> sums(static_cast<int>(blockIdx.y), thread % kLanes, x.columns);
  if (accumulate) sums.read(y.data + row * y.stride);
  const std::int64_t end = block.indptr[row + 1];
  std::int64_t begin = block.indptr[row];
  Entries<kAhead> next;
  if (begin < end) next.read(block, x, begin, end);
  while (begin < end) {
    const auto now = next;
    Pack<float, N> rows[kPacks][kAhead] = {};
    sums.load(now, rows);
    begin += kAhead;
    if (begin < end) next.read(block, x, begin, end);  // while the rows are on their way
    sums.add(now, rows);
  }
  sums.write(y.data + row * y.stride);
  if (y.own == nullptr) return;
  sums.read(x.data + row * x.columns);
  sums.write(y.own + row * y.stride);
}

template <int N, int kLanes, int kPacks>
void launch_strips(const Cuda& cuda, const BlockView<Cuda>& block, const Source& x, const Target& y,
                   Update update) {
  const dim3 grid(blocks_for(block.rows, kBlockThreads / kLanes),
                  blocks_for(x.columns, Sums<N, kLanes, kPacks>::kStrip));
  const bool few = block.entries() <= 2 * block.rows;
  launch(cuda, "spmm", few ? multiply_rows<N, kLanes, kPacks, 1> : multiply_rows<N, kLanes, kPacks, 4>, grid,
         dim3(kBlockThreads), block, x, y, update == Update::kAccumulate);
}

/// The narrowest group that has a row in one strip; 32 lanes with two packs each for the widest.
template <int N>
void multiply_packs(const Cuda& cuda, const BlockView<Cuda>& block, const Source& x, const Target& y,
                    Update update) {
  const std::int64_t packs = (x.columns + N - 1) / N;
  if (packs <= 4) return launch_strips<N, 4, 1>(cuda, block, x, y, update);
  if (packs <= 8) return launch_strips<N, 8, 1>(cuda, block, x, y, update);
  if (packs <= 16) return launch_strips<N, 16, 1>(cuda, block, x, y, update);
  if (packs <= 32) return launch_strips<N, 32, 1>(cuda, block, x, y, update);
  launch_strips<N, 32, 2>(cuda, block, x, y, update);
}

void multiply(const Cuda& cuda, const BlockView<Cuda>& block, const Source& x, const Target& y,
              Update update) {
  using device_rows::aligned;
  // (`own` is as many numbers from y.data as X has columns.)
  if (x.columns % 4 == 0 && aligned(x.data, 4 * sizeof(float)) && aligned(y.data, 4 * sizeof(float)))
    return multiply_packs<4>(cuda, block, x, y, update);
  multiply_packs<1>(cuda, block, x, y, update);
}

}  // namespace

template <class T>
void spmm(const Cuda& cuda, const BlockView<Cuda>& block, ConstMatrixView<T, Cuda> x, MatrixView<T, Cuda> y,
          Update update) {
  ESPALIER_CHECK(block.columns == x.rows && block.rows == y.rows && x.columns == y.columns,
                 "[{}, {}] [{}, {}] -> [{}, {}]", block.rows, block.columns, x.rows, x.columns, y.rows,
                 y.columns);
  if (cuda.sparse_products() == SparseProducts::kCusparse && fits_cusparse(block))
    return spmm_by_cusparse(cuda, block, x, y, update);
  multiply(cuda, block, {x.data, x.columns}, {y.data, y.columns}, update);
}

template <class T>
void spmm_beside_rows(const Cuda& cuda, const BlockView<Cuda>& block, ConstMatrixView<T, Cuda> x,
                      MatrixView<T, Cuda> y) {
  ESPALIER_CHECK(block.columns == x.rows && block.rows == y.rows && 2 * x.columns == y.columns,
                 "[{}, {}] [{}, {}] -> [{}, {}]", block.rows, block.columns, x.rows, x.columns, y.rows,
                 y.columns);
  multiply(cuda, block, {x.data, x.columns}, {y.data + x.columns, y.columns, y.data}, Update::kOverwrite);
}

template void spmm_beside_rows<float>(const Cuda&, const BlockView<Cuda>&, ConstMatrixView<float, Cuda>,
                                      MatrixView<float, Cuda>);
template void spmm<float>(const Cuda&, const BlockView<Cuda>&, ConstMatrixView<float, Cuda>,
                          MatrixView<float, Cuda>, Update);

}  // namespace espalier
