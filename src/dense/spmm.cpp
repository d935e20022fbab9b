// Y = B X, row by row as spmm_rows.hpp computes them.
#include "espalier/dense/spmm.hpp"

#include <algorithm>

#include "espalier/base/error.hpp"
#include "spmm_rows.hpp"

namespace espalier {
namespace {

using spmm_rows::add_row, spmm_rows::Entries;

constexpr std::int64_t kRowsOfY = 32;  // handed to a thread

}  // namespace

template <class T>
void spmm(const Cpu& cpu, const BlockView<Cpu>& block, ConstMatrixView<T> x, MatrixView<T> y, Update update) {
  ESPALIER_CHECK(block.columns == x.rows && block.rows == y.rows && x.columns == y.columns,
                 "[{}, {}] [{}, {}] -> [{}, {}]", block.rows, block.columns, x.rows, x.columns, y.rows,
                 y.columns);
#pragma omp parallel for num_threads(cpu.threads) schedule(dynamic, kRowsOfY) if (block.rows > kRowsOfY)
  for (std::int64_t i = 0; i < block.rows; ++i) {
    const std::int64_t begin = block.row_begin(i);
    const Entries row{block.indices + begin, block.values + begin, block.row_size(i),
                      block.indptr[0] + block.entries() - begin};
    add_row<T>(row, x, y.row(i), update == Update::kAccumulate);
  }
}

template void spmm<float>(const Cpu&, const BlockView<Cpu>&, ConstMatrixView<float>, MatrixView<float>,
                          Update);
template void spmm<double>(const Cpu&, const BlockView<Cpu>&, ConstMatrixView<double>, MatrixView<double>,
                           Update);
}  // namespace espalier
