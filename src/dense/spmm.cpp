// Y = B X, bound by how fast rows of X can be gathered from memory.
//
// A row of Y is computed strip by strip of the feature dimension; the sums of one strip live in vector registers while the row's entries
// pass by, so X is read once per strip and Y written once. The strips get narrower towards the end of the row: 4 vectors, 2, 1, then
// single elements. An element's sum has the same order and the same roundings in any strip.
#include "espalier/dense/spmm.hpp"

#include "espalier/base/error.hpp"
#include "simd.hpp"

namespace espalier {
namespace {

constexpr std::int64_t kPrefetchEntries = 8;  // how far ahead rows of X are fetched
constexpr std::int64_t kRowsAtOnce = 32;      // of Y, handed to a thread

/// One row's entries.
struct Entries {
  const std::int32_t* columns;
  const float* values;  ///< null: all 1
  std::int64_t count;
};

/// `vectors` vectors of y at column j; columns of V lanes. Prefetches while it is the row's first strip.
template <class T, int V>
void add_strip(const Entries& row, ConstMatrixView<T> x, T* y, std::int64_t j, bool accumulate) {
  Vector<T> sum[V] = {};
  if (accumulate) __builtin_memcpy(sum, y + j, sizeof sum);
  for (std::int64_t e = 0; e < row.count; ++e) {
    if (e + kPrefetchEntries < row.count)
      for (int v = 0; v < V; ++v) __builtin_prefetch(x.row(row.columns[e + kPrefetchEntries]) + j + v * kLanes<T>);
    const T value = row.values != nullptr ? static_cast<T>(row.values[e]) : T{1};
    const T* source = x.row(row.columns[e]) + j;
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      Vector<T> loaded;
      __builtin_memcpy(&loaded, source + v * kLanes<T>, sizeof loaded);
      sum[v] += value * loaded;
    }
  }
  __builtin_memcpy(y + j, sum, sizeof sum);
}

template <class T>
void add_element(const Entries& row, ConstMatrixView<T> x, T* y, std::int64_t j, bool accumulate) {
  T sum = accumulate ? y[j] : T{0};
  for (std::int64_t e = 0; e < row.count; ++e)
    sum += (row.values != nullptr ? static_cast<T>(row.values[e]) : T{1}) * x(row.columns[e], j);
  y[j] = sum;
}

template <class T>
void add_row(const Entries& row, ConstMatrixView<T> x, T* y, bool accumulate) {
  std::int64_t j = 0;
  for (; j + 4 * kLanes<T> <= x.columns; j += 4 * kLanes<T>) add_strip<T, 4>(row, x, y, j, accumulate);
  for (; j + 2 * kLanes<T> <= x.columns; j += 2 * kLanes<T>) add_strip<T, 2>(row, x, y, j, accumulate);
  for (; j + kLanes<T> <= x.columns; j += kLanes<T>) add_strip<T, 1>(row, x, y, j, accumulate);
  for (; j < x.columns; ++j) add_element(row, x, y, j, accumulate);
}

}  // namespace

template <class T>
void spmm(const Cpu& cpu, const Block& block, ConstMatrixView<T> x, MatrixView<T> y, Update update) {
  ESPALIER_CHECK(block.columns == x.rows && block.rows == y.rows && x.columns == y.columns,
                 "[{}, {}] [{}, {}] -> [{}, {}]", block.rows, block.columns, x.rows, x.columns, y.rows, y.columns);
  const float* values = block.has_values() ? block.values.data() : nullptr;
#pragma omp parallel for num_threads(cpu.threads) schedule(dynamic, kRowsAtOnce) if (block.rows > kRowsAtOnce)
  for (std::int64_t i = 0; i < block.rows; ++i) {
    const std::int64_t begin = block.row_begin(i);
    const Entries row{block.indices.data() + begin, values != nullptr ? values + begin : nullptr, block.row_size(i)};
    add_row(row, x, y.row(i), update == Update::kAccumulate);
  }
}

template void spmm<float>(const Cpu&, const Block&, ConstMatrixView<float>, MatrixView<float>, Update);
template void spmm<double>(const Cpu&, const Block&, ConstMatrixView<double>, MatrixView<double>, Update);

}  // namespace espalier
