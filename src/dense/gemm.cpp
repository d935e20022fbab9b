// C = A B and C = A B^T: B is packed once, then blocks of rows of A are multiplied independently of
// each other.
#include "espalier/dense/gemm.hpp"

#include <algorithm>

#include "espalier/base/error.hpp"
#include "gemm_bf16.hpp"
#include "gemm_kernel.hpp"

namespace espalier {
namespace {

using gemm_kernel::Addend, gemm_kernel::kPanel, gemm_kernel::kTileRows, gemm_kernel::PackedMatrix;

constexpr std::int64_t kBlockRows = 10 * kTileRows;  // rows of A that pass by one panel

/// Rows [begin, end) of C = addend + A B.
template <class T>
void multiply_rows(ConstMatrixView<T> a, const PackedMatrix<T>& b, Addend<T> addend, MatrixView<T> c,
                   std::int64_t begin, std::int64_t end) {
  for (std::int64_t k0 = 0; k0 < b.k(); k0 += gemm_kernel::kDepth) {
    const Addend<T> to = k0 > 0 ? Addend<T>{c.data, c.columns} : addend;
    for (std::int64_t j0 = 0; j0 < b.n(); j0 += kPanel<T>)
      for (std::int64_t i = begin; i < end; i += kTileRows)
        gemm_kernel::multiply_any_tile<T, false>(std::min<std::int64_t>(kTileRows, end - i), b.depth(k0),
                                                 a.row(i) + k0, a.columns, b.panel(k0, j0),
                                                 {to.at(i, j0), to.stride}, c.row(i) + j0, c.columns,
                                                 std::min(kPanel<T>, b.n() - j0));
  }
}

template <class T>
void multiply_packed(const Cpu& cpu, ConstMatrixView<T> a, const PackedMatrix<T>& b, Addend<T> addend,
                     MatrixView<T> c) {
#pragma omp parallel for num_threads(cpu.threads) schedule(dynamic, 1) if (c.rows > kBlockRows)
  for (std::int64_t begin = 0; begin < c.rows; begin += kBlockRows)
    multiply_rows(a, b, addend, c, begin, std::min(c.rows, begin + kBlockRows));
}

/// What C is before any product is added.
template <class T>
Addend<T> start_of(MatrixView<T> c, Update update) {
  return update == Update::kAccumulate ? Addend<T>{c.data, c.columns} : Addend<T>{};
}

/// What a sum of no products leaves.
template <class T>
void fill_without_terms(MatrixView<T> c, Update update) {
  if (update == Update::kOverwrite) std::fill(c.data, c.data + c.rows * c.columns, T{0});
}

/// Packed weights of the product under way; a thread keeps the memory.
template <class T>
PackedMatrix<T>& packing_room() {
  thread_local PackedMatrix<T> room;
  return room;
}

/// C = addend + A B, or A B^T.
template <class T>
void multiply(const Cpu& cpu, ConstMatrixView<T> a, ConstMatrixView<T> b, bool transpose_b, Addend<T> addend,
              MatrixView<T> c) {
  if constexpr (sizeof(T) == sizeof(float))
    if (cpu.precision == Precision::kBf16)
      return bf16::multiply(bf16::best_kernels(), cpu, a, b, transpose_b, addend, c);
  auto& packed = packing_room<T>();
  transpose_b ? packed.pack_transpose(b) : packed.pack(b);
  multiply_packed<T>(cpu, a, packed, addend, c);
}

template <class T>
void check_shapes(ConstMatrixView<T> a, ConstMatrixView<T> b, MatrixView<T> c) {
  ESPALIER_CHECK(a.columns == b.rows && c.rows == a.rows && c.columns == b.columns,
                 "[{}, {}] [{}, {}] -> [{}, {}]", a.rows, a.columns, b.rows, b.columns, c.rows, c.columns);
}

}  // namespace

bool has_fast_bf16() {
  return bf16::amx_kernels() != nullptr;
}

template <class T>
void gemm(const Cpu& cpu, ConstMatrixView<T> a, ConstMatrixView<T> b, MatrixView<T> c, Update update) {
  check_shapes(a, b, c);
  if (b.rows == 0) return fill_without_terms(c, update);
  multiply<T>(cpu, a, b, false, start_of(c, update), c);
}

template <class T>
void fill_rows(const Cpu& cpu, ConstMatrixView<T> row, MatrixView<T> c) {
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (c.rows > 1024)
  for (std::int64_t i = 0; i < c.rows; ++i) std::copy_n(row.data, row.columns, c.row(i));
}

template <class T>
void gemm_plus_row(const Cpu& cpu, ConstMatrixView<T> row, ConstMatrixView<T> a, ConstMatrixView<T> b,
                   MatrixView<T> c) {
  check_shapes(a, b, c);
  ESPALIER_CHECK(row.rows == 1 && row.columns == c.columns, "[{}, {}] is not a row of [{}, {}]", row.rows,
                 row.columns, c.rows, c.columns);
  if (b.rows == 0) return fill_rows<T>(cpu, row, c);
  multiply<T>(cpu, a, b, false, {row.data, 0}, c);
}

template <class T>
void gemm_nt(const Cpu& cpu, ConstMatrixView<T> a, ConstMatrixView<T> b, MatrixView<T> c, Update update) {
  ESPALIER_CHECK(a.columns == b.columns && c.rows == a.rows && c.columns == b.rows,
                 "[{}, {}] [{}, {}]^T -> [{}, {}]", a.rows, a.columns, b.rows, b.columns, c.rows, c.columns);
  if (b.columns == 0) return fill_without_terms(c, update);
  multiply<T>(cpu, a, b, true, start_of(c, update), c);
}

#define ESPALIER_INSTANTIATE(T)                                                                          \
  template void gemm<T>(const Cpu&, ConstMatrixView<T>, ConstMatrixView<T>, MatrixView<T>, Update);      \
  template void gemm_plus_row<T>(const Cpu&, ConstMatrixView<T>, ConstMatrixView<T>, ConstMatrixView<T>, \
                                 MatrixView<T>);                                                         \
  template void fill_rows<T>(const Cpu&, ConstMatrixView<T>, MatrixView<T>);                             \
  template void gemm_nt<T>(const Cpu&, ConstMatrixView<T>, ConstMatrixView<T>, MatrixView<T>, Update);
ESPALIER_INSTANTIATE(float)
ESPALIER_INSTANTIATE(double)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
