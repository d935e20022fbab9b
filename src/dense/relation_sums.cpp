#include "espalier/dense/relation_sums.hpp"

#include <algorithm>
#include <vector>

namespace espalier {

namespace {

constexpr std::int64_t kRowsTogether = 256;  // whose gradients by the coefficients are one sum

int relation_of(const BlockView<Cpu>& block, std::int64_t entry) {
  return block.relations == nullptr ? 0 : block.relations[entry];
}

template <class T>
T value_of(const BlockView<Cpu>& block, std::int64_t entry) {
  return block.values == nullptr ? T{1} : static_cast<T>(block.values[entry]);
}

template <class T>
void add_scaled(T factor, const T* from, std::int64_t count, T* to) {
  for (std::int64_t k = 0; k < count; ++k) to[k] += factor * from[k];
}

template <class T>
T dot(const T* x, const T* y, std::int64_t count) {
  T sums[8] = {};
  std::int64_t k = 0;
  for (; k + 8 <= count; k += 8)
    for (int lane = 0; lane < 8; ++lane) sums[lane] += x[k + lane] * y[k + lane];
  T sum = 0;
  for (const T part : sums) sum += part;
  for (; k < count; ++k) sum += x[k] * y[k];
  return sum;
}

// Calls use(relation, s_vr) for each relation that row v has.
template <class T, class Use>
void for_each_sum(const BlockView<Cpu>& block, ConstMatrixView<T> x, std::int64_t v, std::vector<T>& sum,
                  Use use) {
  sum.resize(static_cast<std::size_t>(x.columns));
  for (auto e = block.row_begin(v); e < block.row_end(v);) {
    const int relation = relation_of(block, e);
    std::ranges::fill(sum, T{0});
    for (; e < block.row_end(v) && relation_of(block, e) == relation; ++e)
      add_scaled(value_of<T>(block, e), x.row(block.indices[e]), x.columns, sum.data());
    use(relation, sum.data());
  }
}

}  // namespace

template <class T>
void relation_sums(const Cpu& cpu, const BlockView<Cpu>& block, ConstMatrixView<T> a, ConstMatrixView<T> x,
                   MatrixView<T> m) {
#pragma omp parallel num_threads(cpu.threads)
  {
    std::vector<T> sum;
#pragma omp for schedule(dynamic, 64)
    for (std::int64_t v = 0; v < block.rows; ++v) {
      T* const to = m.row(v);
      std::fill_n(to, m.columns, T{0});
      for_each_sum(block, x, v, sum, [&](int relation, const T* of_relation) {
        for (std::int64_t b = 0; b < a.columns; ++b)
          add_scaled(a(relation, b), of_relation, x.columns, to + b * x.columns);
      });
    }
  }
}

template <class T>
void relation_sums_input_gradient(const Cpu& cpu, const BlockView<Cpu>& block,
                                  const BlockView<Cpu>& transposed, const Buffer<std::int64_t>& positions,
                                  ConstMatrixView<T> a, ConstMatrixView<T> dm, MatrixView<T> dx) {
#pragma omp parallel for num_threads(cpu.threads) schedule(dynamic, 64)
  for (std::int64_t u = 0; u < transposed.rows; ++u) {
    T* const to = dx.row(u);
    std::fill_n(to, dx.columns, T{0});
    for (auto k = transposed.row_begin(u); k < transposed.row_end(u); ++k) {
      const auto relation = relation_of(block, block.indptr[0] + positions[k]);
      const T value = value_of<T>(transposed, k);
      const T* const from = dm.row(transposed.indices[k]);
      for (std::int64_t b = 0; b < a.columns; ++b)
        add_scaled(value * a(relation, b), from + b * dx.columns, dx.columns, to);
    }
  }
}

template <class T>
void relation_sums_coefficient_gradient(const Cpu& cpu, const BlockView<Cpu>& block, ConstMatrixView<T> x,
                                        ConstMatrixView<T> dm, MatrixView<T> da) {
  const auto parts = (block.rows + kRowsTogether - 1) / kRowsTogether, size = da.rows * da.columns;
  std::vector<T> of_parts(static_cast<std::size_t>(parts * size), T{0});
#pragma omp parallel num_threads(cpu.threads)
  {
    std::vector<T> sum;
#pragma omp for schedule(dynamic, 1)
    for (std::int64_t part = 0; part < parts; ++part) {
      T* const to = of_parts.data() + part * size;
      for (auto v = part * kRowsTogether; v < std::min(block.rows, (part + 1) * kRowsTogether); ++v)
        for_each_sum(block, x, v, sum, [&](int relation, const T* of_relation) {
          for (std::int64_t b = 0; b < da.columns; ++b)
            to[relation * da.columns + b] += dot(of_relation, dm.row(v) + b * x.columns, x.columns);
        });
    }
  }
  std::fill_n(da.data, size, T{0});
  for (std::int64_t part = 0; part < parts; ++part)
    for (std::int64_t k = 0; k < size; ++k) da.data[k] += of_parts[part * size + k];
}

#define ESPALIER_INSTANTIATE(T)                                                                           \
  template void relation_sums(const Cpu&, const BlockView<Cpu>&, ConstMatrixView<T>, ConstMatrixView<T>,  \
                              MatrixView<T>);                                                             \
  template void relation_sums_input_gradient(const Cpu&, const BlockView<Cpu>&, const BlockView<Cpu>&,    \
                                             const Buffer<std::int64_t>&, ConstMatrixView<T>,             \
                                             ConstMatrixView<T>, MatrixView<T>);                          \
  template void relation_sums_coefficient_gradient(const Cpu&, const BlockView<Cpu>&, ConstMatrixView<T>, \
                                                   ConstMatrixView<T>, MatrixView<T>);
ESPALIER_INSTANTIATE(float)
ESPALIER_INSTANTIATE(double)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
