// C = A B, A B^T and A^T B in bfloat16: how matrices are cut into blocks. Of A B and A B^T, B is
// rounded once, then a thread rounds 32 rows of A and multiplies them by all of B, so that each
// number of A is read once, and the next 32 rows are asked for while these are multiplied. Of A^T B
// a thread rounds what it multiplies, kTermsAtOnce rows at a time.
#include "gemm_bf16.hpp"

#include <algorithm>

namespace espalier::bf16 {
namespace {

constexpr std::int64_t kRowBlocks = 4;  // of 32 rows of A, that a thread takes at a time

std::int64_t blocks_of(std::int64_t count) {
  return (count + kBlock - 1) / kBlock;
}

/// Rows of m from `row` on, of columns from `column` on: so many of them, and at most 32 rows.
Piece rows_at(ConstMatrixView<float> m, std::int64_t row, std::int64_t column, std::int64_t columns) {
  return {m.row(row) + column, m.columns, std::min(kBlock, m.rows - row), columns};
}

/// Asks for rows [begin, end) of what is read next.
void prefetch_rows(ConstMatrixView<float> m, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t kLine = 16;
  const float* const last = m.row(std::min(m.rows, end));
  for (const float* line = m.row(std::min(m.rows, begin)); line < last; line += kLine)
    __builtin_prefetch(line, 0, 2);
}

/// Rows of A that begin at row i, by all of B, which has `terms` blocks for every 32 columns.
void multiply_rows(const Kernels& kernels, ConstMatrixView<float> a, const Block* b, std::int64_t i,
                   gemm_kernel::Addend<float> addend, MatrixView<float> c) {
  const std::int64_t terms = blocks_of(a.columns);
  Block* const rows = workspace<struct RowsOfA, Block>(static_cast<std::size_t>(terms)).data();
  kernels.rows(rows_at(a, i, 0, a.columns), rows, 1);
  const std::int64_t groups = blocks_of(c.columns);
  for (std::int64_t g = 0; g < groups; ++g, b += terms) {
    const std::int64_t j = g * kBlock, next = i + kBlock;
    prefetch_rows(a, next + g * kBlock / groups, next + (g + 1) * kBlock / groups);
    kernels.multiply(rows, b, terms,
                     {c.row(i) + j, c.columns, std::min(kBlock, c.rows - i), std::min(kBlock, c.columns - j),
                      addend.at(i, j), addend.stride});
  }
}

}  // namespace

void multiply(const Kernels& kernels, const Cpu& cpu, ConstMatrixView<float> a, ConstMatrixView<float> b,
              bool transpose_b, gemm_kernel::Addend<float> addend, MatrixView<float> c) {
  const std::int64_t n = c.columns, terms = blocks_of(a.columns), groups = blocks_of(n);
  Block* const packed = workspace<struct PairsOfB, Block>(static_cast<std::size_t>(terms * groups)).data();
  for (std::int64_t t = 0; t < terms && !transpose_b; ++t)
    kernels.pairs(rows_at(b, t * kBlock, 0, n), packed + t, terms);
  for (std::int64_t g = 0; g < groups && transpose_b; ++g)
    kernels.pairs_of_transpose(rows_at(b, g * kBlock, 0, b.columns), packed + g * terms, 1);
#pragma omp parallel num_threads(cpu.threads) if (c.rows > kRowBlocks * kBlock)
  {
    const Multiplying multiplying(kernels);
#pragma omp for schedule(dynamic, kRowBlocks)
    for (std::int64_t i = 0; i < c.rows; i += kBlock) multiply_rows(kernels, a, packed, i, addend, c);
  }
}

void add_transposed_product(const Kernels& kernels, ConstMatrixView<float> a, ConstMatrixView<float> b,
                            std::int64_t begin, std::int64_t end, std::int64_t first, std::int64_t width,
                            MatrixView<float> c, bool add) {
  const std::int64_t across = blocks_of(width), beside = blocks_of(c.columns), most = blocks_of(kTermsAtOnce);
  Block* const of_a = workspace<struct ColumnsOfA, Block>(static_cast<std::size_t>(across * most)).data();
  Block* const of_b = workspace<struct ColumnsOfB, Block>(static_cast<std::size_t>(beside * most)).data();
  for (std::int64_t k0 = begin; k0 < end; k0 += kTermsAtOnce, add = true) {
    const ConstMatrixView<float> rows_of_a(std::min(end, k0 + kTermsAtOnce), a.columns, a.data),
        rows_of_b(rows_of_a.rows, b.columns, b.data);
    const std::int64_t terms = blocks_of(rows_of_a.rows - k0);
    for (std::int64_t t = 0; t < terms; ++t) {
      kernels.rows_of_transpose(rows_at(rows_of_a, k0 + t * kBlock, first, width), of_a + t, most);
      kernels.pairs(rows_at(rows_of_b, k0 + t * kBlock, 0, b.columns), of_b + t, most);
    }
    for (std::int64_t g = 0; g < across; ++g)
      for (std::int64_t h = 0; h < beside; ++h) {
        float* const to = c.row(first + g * kBlock) + h * kBlock;
        kernels.multiply(of_a + g * most, of_b + h * most, terms,
                         {to, c.columns, std::min(kBlock, width - g * kBlock),
                          std::min(kBlock, c.columns - h * kBlock), add ? to : nullptr, c.columns});
      }
  }
}

}  // namespace espalier::bf16
