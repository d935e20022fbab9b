// Y = B X, row by row as spmm_rows.hpp computes them.
#include "espalier/dense/spmm.hpp"

#include <algorithm>

#include "espalier/base/error.hpp"
#include "spmm_rows.hpp"

namespace espalier {
namespace {

using spmm_rows::add_row, spmm_rows::Entries, spmm_rows::Source;

constexpr std::int64_t kRowsOfY = 32;  // handed to a thread

template <class T, class S>
void multiply(const Cpu& cpu, const BlockView<Cpu>& block, const Source<S>& x, MatrixView<T> y,
              Update update) {
#pragma omp parallel for num_threads(cpu.threads) schedule(dynamic, kRowsOfY) if (block.rows > kRowsOfY)
  for (std::int64_t i = 0; i < block.rows; ++i) {
    const std::int64_t begin = block.row_begin(i);
    const Entries row{block.indices + begin, block.has_values() ? block.values + begin : nullptr,
                      block.row_size(i), block.indptr[0] + block.entries() - begin};
    add_row(row, x, y.row(i), update == Update::kAccumulate);
  }
}

}  // namespace

template <class T>
void spmm(const Cpu& cpu, const BlockView<Cpu>& block, ConstMatrixView<T> x, MatrixView<T> y, Update update) {
  ESPALIER_CHECK(block.columns == x.rows && block.rows == y.rows && x.columns == y.columns,
                 "[{}, {}] [{}, {}] -> [{}, {}]", block.rows, block.columns, x.rows, x.columns, y.rows,
                 y.columns);
  multiply(cpu, block, Source<T>{x}, y, update);
}

template <class S>
void spmm_gathered(const Cpu& cpu, const BlockView<Cpu>& block, std::span<const std::int64_t> ids,
                   ConstMatrixView<S> x, MatrixView<float> y, Update update) {
  ESPALIER_CHECK(block.columns == std::ssize(ids) && block.rows == y.rows && x.columns == y.columns,
                 "[{}, {}] {} rows of [{}, {}] -> [{}, {}]", block.rows, block.columns, ids.size(), x.rows,
                 x.columns, y.rows, y.columns);
  multiply(cpu, block, Source<S>{x, ids.data()}, y, update);
}

template void spmm<float>(const Cpu&, const BlockView<Cpu>&, ConstMatrixView<float>, MatrixView<float>,
                          Update);
template void spmm<double>(const Cpu&, const BlockView<Cpu>&, ConstMatrixView<double>, MatrixView<double>,
                           Update);
template void spmm_gathered<float>(const Cpu&, const BlockView<Cpu>&, std::span<const std::int64_t>,
                                   ConstMatrixView<float>, MatrixView<float>, Update);
template void spmm_gathered<Half>(const Cpu&, const BlockView<Cpu>&, std::span<const std::int64_t>,
                                  ConstMatrixView<Half>, MatrixView<float>, Update);

}  // namespace espalier
