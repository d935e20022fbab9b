// A thread has an element of a row, so the threads of a warp read consecutive elements of the rows
// that are gathered. Of the coefficients' gradient a thread has the share of some rows in one of
// them, and these are added in one order.
#include "espalier/dense/relation_sums.hpp"

#include "espalier/base/device_array.hpp"
#include "espalier/base/launch.hpp"

namespace espalier {

namespace {

constexpr std::int64_t kRowsTogether = 64;

__device__ inline float value_of(const BlockView<Cuda>& block, std::int64_t entry) {
  return block.values == nullptr ? 1.0f : block.values[entry];
}

// A block as kernels read it.
BlockView<Cuda> plain(const BlockView<Cuda>& block) {
  auto copy = block;
  copy.runs = {};
  return copy;
}

}  // namespace

template <class T>
void relation_sums(const Cuda& cuda, const BlockView<Cuda>& of, ConstMatrixView<T, Cuda> a,
                   ConstMatrixView<T, Cuda> x, MatrixView<T, Cuda> m) {
  const auto block = plain(of);
  for_each_in_rows(cuda, "relation_sums", block.rows, x.columns,
                   [=] __device__(std::int64_t v, std::int64_t f) {
                     T* const to = m.row(v) + f;
                     for (std::int64_t b = 0; b < a.columns; ++b) to[b * x.columns] = 0;
                     const auto end = block.indptr[v + 1];
                     for (auto e = block.indptr[v]; e < end;) {
                       const int relation = block.relation(e);
                       T sum = 0;
                       for (; e < end && block.relation(e) == relation; ++e)
                         sum += value_of(block, e) * x(block.indices[e], f);
                       for (std::int64_t b = 0; b < a.columns; ++b) to[b * x.columns] += a(relation, b) * sum;
                     }
                   });
}

template <class T>
void relation_sums_input_gradient(const Cuda& cuda, const BlockView<Cuda>& of,
                                  const Csr<std::int32_t, Cuda>& transposed_of,
                                  const DeviceArray<std::int32_t>& positions, ConstMatrixView<T, Cuda> a,
                                  ConstMatrixView<T, Cuda> dm, RelationScratch<T, Cuda>,
                                  MatrixView<T, Cuda> dx) {
  const auto block = plain(of);
  const BlockView<Cuda> transposed = transposed_of;
  const auto* const position = positions.data();
  for_each_in_rows(cuda, "relation_sums_input_gradient", dx.rows, dx.columns,
                   [=] __device__(std::int64_t u, std::int64_t f) {
                     T sum = 0;
                     for (auto k = transposed.indptr[u]; k < transposed.indptr[u + 1]; ++k) {
                       const int relation = block.relation(block.indptr[0] + position[k]);
                       const T value = value_of(transposed, k);
                       const T* const from = dm.row(transposed.indices[k]) + f;
                       for (std::int64_t b = 0; b < a.columns; ++b)
                         sum += value * a(relation, b) * from[b * dx.columns];
                     }
                     dx(u, f) = sum;
                   });
}

template <class T>
void relation_sums_coefficient_gradient(const Cuda& cuda, const BlockView<Cuda>& of,
                                        ConstMatrixView<T, Cuda> x, ConstMatrixView<T, Cuda> dm,
                                        MatrixView<T, Cuda> da) {
  const auto block = plain(of);
  const auto parts = (block.rows + kRowsTogether - 1) / kRowsTogether, size = da.rows * da.columns;
  DeviceArray<T> of_parts(static_cast<std::size_t>(parts * size));
  T* const part_sums = of_parts.data();
  for_each_in_rows(
      cuda, "relation_sums_coefficients", parts, size, [=] __device__(std::int64_t part, std::int64_t at) {
        const auto relation = at / da.columns, b = at % da.columns;
        const auto last = (part + 1) * kRowsTogether < block.rows ? (part + 1) * kRowsTogether : block.rows;
        T sum = 0;
        for (auto v = part * kRowsTogether; v < last; ++v) {
          const T* const by_row = dm.row(v) + b * x.columns;
          for (auto e = block.indptr[v]; e < block.indptr[v + 1]; ++e) {
            if (block.relation(e) != relation) continue;
            const T* const row = x.row(block.indices[e]);
            T product = 0;
            for (std::int64_t f = 0; f < x.columns; ++f) product += row[f] * by_row[f];
            sum += value_of(block, e) * product;
          }
        }
        part_sums[part * size + at] = sum;
      });
  T* const to = da.data;
  for_each(cuda, "sum_of_parts", size, [=] __device__(std::int64_t at) {
    T sum = 0;
    for (std::int64_t part = 0; part < parts; ++part) sum += part_sums[part * size + at];
    to[at] = sum;
  });
}

template void relation_sums(const Cuda&, const BlockView<Cuda>&, ConstMatrixView<float, Cuda>,
                            ConstMatrixView<float, Cuda>, MatrixView<float, Cuda>);
template void relation_sums_input_gradient(const Cuda&, const BlockView<Cuda>&,
                                           const Csr<std::int32_t, Cuda>&, const DeviceArray<std::int32_t>&,
                                           ConstMatrixView<float, Cuda>, ConstMatrixView<float, Cuda>,
                                           RelationScratch<float, Cuda>, MatrixView<float, Cuda>);
template void relation_sums_coefficient_gradient(const Cuda&, const BlockView<Cuda>&,
                                                 ConstMatrixView<float, Cuda>, ConstMatrixView<float, Cuda>,
                                                 MatrixView<float, Cuda>);

}  // namespace espalier
