// C = A^T B for tall A and B: the gradient of a weight matrix, a sum over the rows of a minibatch.
//
// The rows are cut into chunks by a rule that does not know the threads. A thread multiplies a
// chunk into a partial C, kDepth rows at a time, and the partial results are added in the order of
// the chunks. So the result depends on A and B only; the many short sums also keep the rounding
// error of a long float32 sum small.
#include <algorithm>

#include "espalier/base/buffer.hpp"
#include "espalier/base/error.hpp"
#include "espalier/dense/gemm.hpp"
#include "gemm_bf16.hpp"
#include "gemm_kernel.hpp"

namespace espalier {
namespace {

using gemm_kernel::Addend, gemm_kernel::kDepth, gemm_kernel::kPanel, gemm_kernel::kTileRows,
    gemm_kernel::PackedMatrix;

constexpr std::int64_t kChunkRows = 1024;  // at least
constexpr std::int64_t kMostChunks = 32;   // bounds the memory of the partial results

/// Some rows of A and B and some columns of A, which are rows of C.
struct Part {
  std::int64_t begin, end;    ///< rows of A and B
  std::int64_t first, width;  ///< columns of A
};

/// A's part, at most kDepth rows of it, as the kernel reads A^T: tile after tile of kTileRows
/// columns, in it row after row. A is read in the order in which it lies.
template <class T>
void pack_tiles(ConstMatrixView<T> a, const Part& part, T* tiles) {
  const std::int64_t depth = part.end - part.begin, whole = part.width / kTileRows * kTileRows,
                     rest = part.width - whole;
  for (std::int64_t k = 0; k < depth; ++k) {
    const T* from = a.row(part.begin + k) + part.first;
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

  /// Room for a product [m, n], made before the work is shared out: who gets how much of it
  /// is chance.
  static PackingRoom& mine(std::int64_t m, std::int64_t n) {
    thread_local PackingRoom room;
    room.a.resize(std::max(room.a.size(), static_cast<std::size_t>(kDepth * m)));
    room.b.reserve(kDepth, n);
    return room;
  }
};

/// C (+)= A^T B over at most kDepth rows.
template <class T>
void add_rows(ConstMatrixView<T> a, ConstMatrixView<T> b, const Part& part, MatrixView<T> c, bool add,
              PackingRoom<T>& packed) {
  const std::int64_t depth = part.end - part.begin;
  pack_tiles(a, part, packed.a.data());
  packed.b.pack({depth, b.columns, b.row(part.begin)});
  for (std::int64_t i = 0; i < part.width; i += kTileRows)
    for (std::int64_t j0 = 0; j0 < c.columns; j0 += kPanel<T>) {
      T* const tile = c.row(part.first + i) + j0;
      gemm_kernel::multiply_any_tile<T, true>(std::min<std::int64_t>(kTileRows, part.width - i), depth,
                                              packed.a.data() + i * depth, 0, packed.b.panel(0, j0),
                                              add ? Addend<T>{tile, c.columns} : Addend<T>{}, tile, c.columns,
                                              std::min(kPanel<T>, c.columns - j0));
    }
}

/// C (+)= A^T B over all rows of the part.
template <class T>
void add_part(ConstMatrixView<T> a, ConstMatrixView<T> b, const Part& part, MatrixView<T> c, Update update,
              PackingRoom<T>& packed) {
  for (std::int64_t k0 = part.begin; k0 < part.end; k0 += kDepth)
    add_rows(a, b, {k0, std::min(part.end, k0 + kDepth), part.first, part.width}, c,
             k0 > part.begin || update == Update::kAccumulate, packed);
}

/// Into how many parts the columns of A are cut where there are few chunks: enough that no thread
/// waits long for the others. An element of C is the same sum in any part.
std::int64_t column_parts(std::int64_t chunks, std::int64_t columns, int threads) {
  constexpr std::int64_t kPartsPerThread = 4, kFewestTiles = 4;
  if (threads == 1) return 1;
  return std::clamp<std::int64_t>((kPartsPerThread * threads + chunks - 1) / chunks, 1,
                                  std::max<std::int64_t>(columns / (kFewestTiles * kTileRows), 1));
}

/// How a part is multiplied: in float32 or double, or in bfloat16 (float alone).
template <class T>
struct AddPart {
  static constexpr std::int64_t kTile = kTileRows;

  AddPart(std::int64_t m, std::int64_t n) : packed(PackingRoom<T>::mine(m, n)) {}
  void operator()(ConstMatrixView<T> a, ConstMatrixView<T> b, const Part& part, MatrixView<T> c,
                  Update update) {
    add_part<T>(a, b, part, c, update, packed);
  }
  PackingRoom<T>& packed;
};

struct AddPartInBf16 {
  static constexpr std::int64_t kTile = bf16::kBlock;

  AddPartInBf16(std::int64_t /*m*/, std::int64_t /*n*/) {}
  void operator()(ConstMatrixView<float> a, ConstMatrixView<float> b, const Part& part, MatrixView<float> c,
                  Update update) {
    bf16::add_transposed_product(kernels, a, b, part.begin, part.end, part.first, part.width, c,
                                 update == Update::kAccumulate);
  }
  const bf16::Kernels& kernels = bf16::best_kernels();
  bf16::Multiplying multiplying = bf16::Multiplying(kernels);
};

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

template <class Multiply, class T>
void multiply_by_chunks(const Cpu& cpu, ConstMatrixView<T> a, ConstMatrixView<T> b, MatrixView<T> c,
                        Update update) {
  const std::int64_t chunk_rows = std::max(kChunkRows, (a.rows + kMostChunks - 1) / kMostChunks);
  const std::int64_t chunks = (a.rows + chunk_rows - 1) / chunk_rows, size = c.rows * c.columns;
  if (chunks == 0) {
    if (update == Update::kOverwrite) std::fill(c.data, c.data + size, T{0});
    return;
  }
  T* const partials =
      chunks == 1 ? c.data
                  : workspace<struct PartialProducts, T>(static_cast<std::size_t>(chunks * size)).data();
  const Update of_chunk = chunks == 1 ? update : Update::kOverwrite;
  const std::int64_t parts = column_parts(chunks, c.rows, cpu.threads),
                     tiles = (c.rows + Multiply::kTile - 1) / Multiply::kTile,
                     width = (tiles + parts - 1) / parts * Multiply::kTile;
#pragma omp parallel num_threads(cpu.threads) if (chunks * parts > 1)
  {
    Multiply multiply(c.rows, c.columns);
#pragma omp for schedule(dynamic, 1)
    for (std::int64_t work = 0; work < chunks * parts; ++work) {
      const std::int64_t chunk = work / parts, first = std::min(c.rows, work % parts * width);
      const Part part{chunk * chunk_rows, std::min(a.rows, (chunk + 1) * chunk_rows), first,
                      std::min(c.rows - first, width)};
      multiply(a, b, part, {c.rows, c.columns, partials + chunk * size}, of_chunk);
    }
  }
  if (chunks > 1) add_partials(cpu, partials, chunks, c, update);
}

}  // namespace

template <class T>
void gemm_tn(const Cpu& cpu, ConstMatrixView<T> a, ConstMatrixView<T> b, MatrixView<T> c, Update update) {
  ESPALIER_CHECK(a.rows == b.rows && c.rows == a.columns && c.columns == b.columns,
                 "[{}, {}]^T [{}, {}] -> [{}, {}]", a.rows, a.columns, b.rows, b.columns, c.rows, c.columns);
  if constexpr (sizeof(T) == sizeof(float))
    if (cpu.precision == Precision::kBf16) return multiply_by_chunks<AddPartInBf16>(cpu, a, b, c, update);
  multiply_by_chunks<AddPart<T>>(cpu, a, b, c, update);
}

template void gemm_tn<float>(const Cpu&, ConstMatrixView<float>, ConstMatrixView<float>, MatrixView<float>,
                             Update);
template void gemm_tn<double>(const Cpu&, ConstMatrixView<double>, ConstMatrixView<double>,
                              MatrixView<double>, Update);

}  // namespace espalier
