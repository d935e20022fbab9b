// C = A^T B for tall A and B: the gradient of a weight matrix, a sum over the rows of a minibatch.
//
// The rows are cut into chunks by a rule that does not know the threads. A thread multiplies a chunk into a
// partial C, kDepth rows at a time, and the partial results are added in the order of the chunks. So the
// result depends on A and B only; the many short sums also keep the rounding error of a long float32 sum
// small.
#include <algorithm>

#include "espalier/base/error.hpp"
#include "espalier/dense/gemm.hpp"
#include "gemm_kernel.hpp"

namespace espalier {
namespace {

using gemm_kernel::Addend, gemm_kernel::kDepth, gemm_kernel::kPanel, gemm_kernel::kTileRows,
    gemm_kernel::PackedMatrix;

constexpr std::int64_t kChunkRows = 1024;  // at least
constexpr std::int64_t kMostChunks = 32;   // bounds the memory of the partial results

/// The rows [begin, begin + depth) of A as the kernel reads A^T: tile after tile of kTileRows columns, in it row
/// after row. A is read in the order in which it lies.
template <class T>
void pack_tiles(ConstMatrixView<T> a, std::int64_t begin, std::int64_t depth, T* tiles) {
  const std::int64_t whole = a.columns / kTileRows * kTileRows, rest = a.columns - whole;
  for (std::int64_t k = 0; k < depth; ++k) {
    const T* from = a.row(begin + k);
    for (std::int64_t i = 0; i < whole; i += kTileRows)  // copies of constant length
      __builtin_memcpy(tiles + i * depth + k * kTileRows, from + i, sizeof(T) * kTileRows);
    for (std::int64_t i = 0; i < rest; ++i) tiles[whole * depth + k * rest + i] = from[whole + i];
  }
}

/// What a thread packs its part of A and B into, kept from product to product.
template <class T>
struct PackingRoom {
  Buffer<T> a;
  PackedMatrix<T> b;
};

/// C (+)= A^T B over the rows [begin, begin + depth), depth <= kDepth.
template <class T>
void add_rows(ConstMatrixView<T> a, ConstMatrixView<T> b, std::int64_t begin, std::int64_t depth,
              MatrixView<T> c, bool add, PackingRoom<T>& packed) {
  packed.a.resize(static_cast<std::size_t>(kDepth * c.rows));
  pack_tiles(a, begin, depth, packed.a.data());
  packed.b.pack({depth, b.columns, b.row(begin)});
  for (std::int64_t i = 0; i < c.rows; i += kTileRows)
    for (std::int64_t j0 = 0; j0 < c.columns; j0 += kPanel<T>) {
      T* const tile = c.row(i) + j0;
      gemm_kernel::multiply_any_tile<T, true>(std::min<std::int64_t>(kTileRows, c.rows - i), depth,
                                              packed.a.data() + i * depth, 0, packed.b.panel(0, j0),
                                              add ? Addend<T>{tile, c.columns} : Addend<T>{}, tile, c.columns,
                                              std::min(kPanel<T>, c.columns - j0));
    }
}

template <class T>
void add_chunk(ConstMatrixView<T> a, ConstMatrixView<T> b, std::int64_t begin, std::int64_t end,
               MatrixView<T> c, Update update) {
  thread_local PackingRoom<T> packed;
  for (std::int64_t k0 = begin; k0 < end; k0 += kDepth)
    add_rows(a, b, k0, std::min(kDepth, end - k0), c, k0 > begin || update == Update::kAccumulate, packed);
}

/// C (+)= the sum of `chunks` partial results, element by element in the order of the chunks.
template <class T>
void add_partials(const Cpu& cpu, const T* partials, std::int64_t chunks, MatrixView<T> c, Update update) {
  const std::int64_t size = c.rows * c.columns;
#pragma omp parallel for simd num_threads(cpu.threads) schedule(static) if (parallel : size > 65536)
  for (std::int64_t e = 0; e < size; ++e) {
    T sum = update == Update::kAccumulate ? c.data[e] : T{0};
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) sum += partials[chunk * size + e];
    c.data[e] = sum;
  }
}

}  // namespace

template <class T>
void gemm_tn(const Cpu& cpu, ConstMatrixView<T> a, ConstMatrixView<T> b, MatrixView<T> c, Update update) {
  ESPALIER_CHECK(a.rows == b.rows && c.rows == a.columns && c.columns == b.columns,
                 "[{}, {}]^T [{}, {}] -> [{}, {}]", a.rows, a.columns, b.rows, b.columns, c.rows, c.columns);
  const std::int64_t chunk_rows = std::max(kChunkRows, (a.rows + kMostChunks - 1) / kMostChunks);
  const std::int64_t chunks = (a.rows + chunk_rows - 1) / chunk_rows, size = c.rows * c.columns;
  if (chunks == 1) return add_chunk<T>(a, b, 0, a.rows, c, update);
  thread_local Buffer<T> kept;  // the calling thread's
  kept.resize(std::max(kept.size(), static_cast<std::size_t>(chunks * size)));
  T* const partials = kept.data();
#pragma omp parallel for num_threads(cpu.threads) schedule(dynamic, 1)
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk)
    add_chunk<T>(a, b, chunk * chunk_rows, std::min(a.rows, (chunk + 1) * chunk_rows),
                 {c.rows, c.columns, partials + chunk * size}, Update::kOverwrite);
  add_partials(cpu, partials, chunks, c, update);
}

template void gemm_tn<float>(const Cpu&, ConstMatrixView<float>, ConstMatrixView<float>, MatrixView<float>,
                             Update);
template void gemm_tn<double>(const Cpu&, ConstMatrixView<double>, ConstMatrixView<double>,
                              MatrixView<double>, Update);

}  // namespace espalier
