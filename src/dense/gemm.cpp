// C = A B and C = A B^T: B is packed once, then blocks of rows of A are multiplied independently of each
// other.
#include "espalier/dense/gemm.hpp"

#include <algorithm>

#include "espalier/base/error.hpp"
#include "gemm_kernel.hpp"

namespace espalier {
namespace {

using gemm_kernel::kPanel, gemm_kernel::kTileRows, gemm_kernel::PackedMatrix;

constexpr std::int64_t kBlockRows = 10 * kTileRows;  // rows of A that pass by one panel

/// Rows [begin, end) of C (+)= A B.
template <class T>
void multiply_rows(ConstMatrixView<T> a, const PackedMatrix<T>& b, MatrixView<T> c, std::int64_t begin,
                   std::int64_t end, Update update) {
  for (std::int64_t k0 = 0; k0 < b.k(); k0 += gemm_kernel::kDepth) {
    const bool add = k0 > 0 || update == Update::kAccumulate;
    for (std::int64_t j0 = 0; j0 < b.n(); j0 += kPanel<T>)
      for (std::int64_t i = begin; i < end; i += kTileRows)
        gemm_kernel::multiply_any_tile<T, false>(std::min<std::int64_t>(kTileRows, end - i), b.depth(k0),
                                                 a.row(i) + k0, a.columns, b.panel(k0, j0), c.row(i) + j0,
                                                 c.columns, std::min(kPanel<T>, b.n() - j0), add);
  }
}

template <class T>
void multiply(const Cpu& cpu, ConstMatrixView<T> a, const PackedMatrix<T>& b, MatrixView<T> c,
              Update update) {
  if (b.k() == 0 && update == Update::kOverwrite) std::fill(c.data, c.data + c.rows * c.columns, T{0});
#pragma omp parallel for num_threads(cpu.threads) schedule(dynamic, 1) if (c.rows > kBlockRows)
  for (std::int64_t begin = 0; begin < c.rows; begin += kBlockRows)
    multiply_rows(a, b, c, begin, std::min(c.rows, begin + kBlockRows), update);
}

}  // namespace

template <class T>
void gemm(const Cpu& cpu, ConstMatrixView<T> a, ConstMatrixView<T> b, MatrixView<T> c, Update update) {
  ESPALIER_CHECK(a.columns == b.rows && c.rows == a.rows && c.columns == b.columns,
                 "[{}, {}] [{}, {}] -> [{}, {}]", a.rows, a.columns, b.rows, b.columns, c.rows, c.columns);
  PackedMatrix<T> packed;
  packed.pack(b);
  multiply<T>(cpu, a, packed, c, update);
}

template <class T>
void gemm_nt(const Cpu& cpu, ConstMatrixView<T> a, ConstMatrixView<T> b, MatrixView<T> c, Update update) {
  ESPALIER_CHECK(a.columns == b.columns && c.rows == a.rows && c.columns == b.rows,
                 "[{}, {}] [{}, {}]^T -> [{}, {}]", a.rows, a.columns, b.rows, b.columns, c.rows, c.columns);
  PackedMatrix<T> packed;
  packed.pack_transpose(b);
  multiply<T>(cpu, a, packed, c, update);
}

#define ESPALIER_INSTANTIATE(T)                                                                     \
  template void gemm<T>(const Cpu&, ConstMatrixView<T>, ConstMatrixView<T>, MatrixView<T>, Update); \
  template void gemm_nt<T>(const Cpu&, ConstMatrixView<T>, ConstMatrixView<T>, MatrixView<T>, Update);
ESPALIER_INSTANTIATE(float)
ESPALIER_INSTANTIATE(double)

}  // namespace espalier
