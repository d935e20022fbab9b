// Of each row the sums s_vr are made first, as rows of a sparse product are (spmm_rows.hpp), for
// all relations that the row has; then they are combined with the coefficients while they lie in
// the first-level cache. Backward, what dM gives to a sum, dS_vr = sum over b of a_rb dM_vb, is
// made once for all entries of the relation in the row, and dX is a sparse product with it.
#include "espalier/dense/relation_sums.hpp"

#include <algorithm>
#include <cstdint>
#include <span>

#include "dot_products.hpp"
#include "espalier/base/buffer.hpp"
#include "espalier/base/error.hpp"
#include "espalier/dense/spmm.hpp"
#include "simd.hpp"
#include "spmm_rows.hpp"

namespace espalier {

// Products of a few rows with a few coefficients, or with a few other rows: matrices that lie in
// the first-level cache, of which many follow one another. A tile of the result stays in vector
// registers while the rows that make it pass by.
//
// An element's sum has one order and fused roundings, whatever the tile.

template <class T>
Vector<T> in_every_lane(T x) {
  return x - Vector<T>{};
}

/// Rows of one length, one under the other.
template <class T>
struct FewRows {
  T* data;
  std::int64_t count, columns;

  T* row(std::int64_t i) const { return data + i * columns; }
};

/// Columns j .. j + V vectors of kRows rows of the result.
template <class T, int kRows, int V>
void combine_tile(const T* coefficients, const FewRows<const T>& in, T* out, std::int64_t stride,
                  std::int64_t j) {
  Vector<T> sum[kRows][V] = {};
  for (std::int64_t i = 0; i < in.count; ++i) {
    Vector<T> x[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) x[v] = vector_at(in.row(i) + j + v * kLanes<T>);
#pragma GCC unroll 8
    for (int o = 0; o < kRows; ++o)
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v)
        sum[o][v] = fused_multiply_add(in_every_lane(coefficients[o * in.count + i]), x[v], sum[o][v]);
  }
#pragma GCC unroll 8
  for (int o = 0; o < kRows; ++o)
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) put_vector<T>(sum[o][v], out + o * stride + j + v * kLanes<T>);
}

template <class T, int kRows>
void combine_rows(const T* coefficients, const FewRows<const T>& in, T* out) {
  const auto columns = in.columns;
  std::int64_t j = 0;
  for (; j + 2 * kLanes<T> <= columns; j += 2 * kLanes<T>)
    combine_tile<T, kRows, 2>(coefficients, in, out, columns, j);
  for (; j < columns && columns >= kLanes<T>; j += kLanes<T>)  // the last vector may overlap
    combine_tile<T, kRows, 1>(coefficients, in, out, columns, std::min(j, columns - kLanes<T>));
  for (; j < columns; ++j)
    for (int o = 0; o < kRows; ++o) {
      T sum = 0;
      for (std::int64_t i = 0; i < in.count; ++i)
        sum = fused_multiply_add(coefficients[o * in.count + i], in.row(i)[j], sum);
      out[o * columns + j] = sum;
    }
}

/// out_o = sum over i of coefficients[o][i] in_i.
template <class T>
void combine(const T* coefficients, const FewRows<const T>& in, const FewRows<T>& out) {
  std::int64_t o = 0;
  for (; o + 4 <= out.count; o += 4) combine_rows<T, 4>(coefficients + o * in.count, in, out.row(o));
  for (; o < out.count; ++o) combine_rows<T, 1>(coefficients + o * in.count, in, out.row(o));
}

template <class T, int kOthers>
void add_products_with(const T* x, const FewRows<const T>& others, std::int64_t first, T* lanes) {
  const auto lanes_of = [&](int o) { return lanes + (first + o) * kSumLanes<T>; };
  LaneSums<T> sums[kOthers];
#pragma GCC unroll 4
  for (int o = 0; o < kOthers; ++o) sums[o] = LaneSums<T>::at(lanes_of(o));
  std::int64_t j = 0;
  for (; j + kSumLanes<T> <= others.columns; j += kSumLanes<T>)
#pragma GCC unroll 4
    for (int o = 0; o < kOthers; ++o) sums[o].add(x + j, others.row(first + o) + j);
#pragma GCC unroll 4
  for (int o = 0; o < kOthers; ++o) sums[o].put(lanes_of(o));
  for (int o = 0; o < kOthers && j < others.columns; ++o)
    with_rest(sums[o], x + j, others.row(first + o) + j, 0, others.columns - j).put(lanes_of(o));
}

/// lanes [others][kSumLanes] += the products of the elements of x with those of each row: their sum
/// over the lanes is the dot product.
template <class T>
void add_products(const T* x, const FewRows<const T>& others, T* lanes) {
  std::int64_t o = 0;
  for (; o + 4 <= others.count; o += 4) add_products_with<T, 4>(x, others, o, lanes);
  for (; o < others.count; ++o) add_products_with<T, 1>(x, others, o, lanes);
}

namespace {

constexpr std::int64_t kRowsAtOnce = 32;     // handed to a thread
constexpr std::int64_t kRowsTogether = 256;  // whose gradients by the coefficients are one sum

/// The end of the entries that share the relation of entry `begin` of a row that ends at `end`.
std::int64_t segment_end(const BlockView<Cpu>& block, std::int64_t begin, std::int64_t end) {
  if (block.relations == nullptr) return end;
  auto e = begin + 1;
  while (e < end && block.relations[e] == block.relations[begin]) ++e;
  return e;
}

/// What a thread works in.
template <class T>
struct Room {
  std::span<int> relations;   ///< of a row, ascending
  std::span<T> sums;          ///< s_vr of each
  std::span<T> coefficients;  ///< a_rb, in the order in which they are needed

  Room(std::int64_t relation_count, std::int64_t bases, std::int64_t columns)
      : relations(workspace<struct RowRelations, int>(static_cast<std::size_t>(relation_count))),
        sums(workspace<struct RelationSums, T>(static_cast<std::size_t>(relation_count * columns))),
        coefficients(workspace<struct RowCoefficients, T>(static_cast<std::size_t>(relation_count * bases))) {
  }
};

/// Fills relations and returns how many the row has.
template <class T>
std::int64_t list_relations(const BlockView<Cpu>& block, std::int64_t v, const Room<T>& room) {
  std::int64_t count = 0;
  for (auto e = block.row_begin(v); e < block.row_end(v); e = segment_end(block, e, block.row_end(v)))
    room.relations[count++] = block.relation(e);
  return count;
}

/// Fills relations and sums, and returns how many there are.
template <class T>
std::int64_t sum_relations(const BlockView<Cpu>& block, ConstMatrixView<T> x, std::int64_t v,
                           const Room<T>& room) {
  const auto all = block.indptr[0] + block.entries();
  std::int64_t count = 0;
  for (auto e = block.row_begin(v); e < block.row_end(v); ++count) {
    const auto end = segment_end(block, e, block.row_end(v));
    const spmm_rows::Entries entries{block.indices + e, block.values + e, end - e, all - e};
    spmm_rows::add_row<T>(entries, x, room.sums.data() + count * x.columns, false);
    room.relations[count] = block.relation(e);
    e = end;
  }
  return count;
}

/// a_rb of `count` relations: [b][r], or [r][b].
template <class T>
void take_coefficients(ConstMatrixView<T> a, std::int64_t count, bool by_base, const Room<T>& room) {
  for (std::int64_t r = 0; r < count; ++r)
    for (std::int64_t b = 0; b < a.columns; ++b)
      room.coefficients[by_base ? b * count + r : r * a.columns + b] = a(room.relations[r], b);
}

/// The number of each entry's sum s_vr; returns how many there are.
std::int64_t number_sums(const BlockView<Cpu>& block, Buffer<std::int32_t>& numbers) {
  ESPALIER_CHECK(block.entries() < std::int64_t{1} << 31, "{} entries in a block", block.entries());
  numbers.resize(static_cast<std::size_t>(block.entries()));
  std::int64_t count = 0;
  for (std::int64_t v = 0; v < block.rows; ++v)
    for (auto e = block.row_begin(v); e < block.row_end(v); ++count) {
      const auto end = segment_end(block, e, block.row_end(v));
      for (; e < end; ++e) numbers[e - block.indptr[0]] = static_cast<std::int32_t>(count);
    }
  return count;
}

/// dX, entry by entry.
template <class T>
void combine_gathered(const Cpu& cpu, const BlockView<Cpu>& block, const Csr<std::int32_t>& transposed,
                      const Buffer<std::int32_t>& positions, ConstMatrixView<T> a, ConstMatrixView<T> dm,
                      MatrixView<T> dx) {
#pragma omp parallel for num_threads(cpu.threads) schedule(dynamic, kRowsAtOnce)
  for (std::int64_t u = 0; u < transposed.rows; ++u) {
    T* const to = dx.row(u);
    std::fill_n(to, dx.columns, T{0});
    for (auto k = transposed.row_begin(u); k < transposed.row_end(u); ++k) {
      const int relation = block.relation(block.indptr[0] + positions[k]);
      const T value = transposed.has_values() ? static_cast<T>(transposed.values[k]) : T{1};
      for (std::int64_t b = 0; b < a.columns; ++b) {
        const T factor = value * a(relation, b);
        const T* const from = dm.row(transposed.indices[k]) + b * dx.columns;
        for (std::int64_t j = 0; j < dx.columns; ++j) to[j] += factor * from[j];
      }
    }
  }
}

/// dS of all rows; `numbers` are of its sums.
template <class T>
void gradients_of_sums(const Cpu& cpu, const BlockView<Cpu>& block, ConstMatrixView<T> a,
                       ConstMatrixView<T> dm, const Buffer<std::int32_t>& numbers, MatrixView<T> ds) {
#pragma omp parallel num_threads(cpu.threads) if (block.rows > kRowsAtOnce)
  {
    const Room<T> room(a.rows, a.columns, 0);
#pragma omp for schedule(dynamic, kRowsAtOnce)
    for (std::int64_t v = 0; v < block.rows; ++v) {
      if (block.row_size(v) == 0) continue;
      const auto count = list_relations(block, v, room);
      take_coefficients(a, count, false, room);
      combine<T>(room.coefficients.data(), {dm.row(v), a.columns, ds.columns},
                 {ds.row(numbers[block.row_begin(v) - block.indptr[0]]), count, ds.columns});
    }
  }
}

}  // namespace

template <class T>
void relation_sums(const Cpu& cpu, const BlockView<Cpu>& block, ConstMatrixView<T> a, ConstMatrixView<T> x,
                   MatrixView<T> m) {
#pragma omp parallel num_threads(cpu.threads) if (block.rows > kRowsAtOnce)
  {
    const Room<T> room(a.rows, a.columns, x.columns);
#pragma omp for schedule(dynamic, kRowsAtOnce)
    for (std::int64_t v = 0; v < block.rows; ++v) {
      const auto count = sum_relations(block, x, v, room);
      take_coefficients(a, count, true, room);
      combine<T>(room.coefficients.data(), {room.sums.data(), count, x.columns},
                 {m.row(v), a.columns, x.columns});
    }
  }
}

template <class T>
void relation_sums_input_gradient(const Cpu& cpu, const BlockView<Cpu>& block, Csr<std::int32_t>& transposed,
                                  const Buffer<std::int32_t>& positions, ConstMatrixView<T> a,
                                  ConstMatrixView<T> dm, RelationScratch<T, Cpu> scratch, MatrixView<T> dx) {
  if (!gathers_gradients_of_sums(a.columns))
    return combine_gathered(cpu, block, transposed, positions, a, dm, dx);
  const auto& numbers = scratch.numbers;
  transposed.columns = number_sums(block, scratch.numbers);
  scratch.gradients.resize(most_relation_sums(block.rows, block.entries(), a.rows), dx.columns);
  const auto ds = MatrixView<T>(scratch.gradients).first_rows(transposed.columns);
  gradients_of_sums(cpu, block, a, dm, numbers, ds);
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
  for (std::int64_t k = 0; k < transposed.entries(); ++k) transposed.indices[k] = numbers[positions[k]];
  spmm<T>(cpu, transposed, ds, dx);
}

template <class T>
void relation_sums_coefficient_gradient(const Cpu& cpu, const BlockView<Cpu>& block, ConstMatrixView<T> x,
                                        ConstMatrixView<T> dm, MatrixView<T> da) {
  const auto parts = (block.rows + kRowsTogether - 1) / kRowsTogether, size = da.rows * da.columns;
  const auto of_parts = workspace<struct PartSums, T>(static_cast<std::size_t>(parts * size));
#pragma omp parallel num_threads(cpu.threads) if (parts > 1)
  {
    const Room<T> room(da.rows, da.columns, x.columns);
    const auto lanes = workspace<struct ProductLanes, T>(static_cast<std::size_t>(size * kSumLanes<T>));
#pragma omp for schedule(dynamic, 1)
    for (std::int64_t part = 0; part < parts; ++part) {
      std::ranges::fill(lanes, T{0});
      for (auto v = part * kRowsTogether; v < std::min(block.rows, (part + 1) * kRowsTogether); ++v) {
        const auto count = sum_relations(block, x, v, room);
        for (std::int64_t r = 0; r < count; ++r)
          add_products<T>(room.sums.data() + r * x.columns, {dm.row(v), da.columns, x.columns},
                          lanes.data() + room.relations[r] * da.columns * kSumLanes<T>);
      }
      for (std::int64_t k = 0; k < size; ++k)
        of_parts[part * size + k] = sum_of_lanes(lanes.data() + k * kSumLanes<T>);
    }
  }
  std::fill_n(da.data, size, T{0});
  for (std::int64_t part = 0; part < parts; ++part)
    for (std::int64_t k = 0; k < size; ++k) da.data[k] += of_parts[part * size + k];
}

#define ESPALIER_INSTANTIATE(T)                                                                           \
  template void relation_sums(const Cpu&, const BlockView<Cpu>&, ConstMatrixView<T>, ConstMatrixView<T>,  \
                              MatrixView<T>);                                                             \
  template void relation_sums_input_gradient(const Cpu&, const BlockView<Cpu>&, Csr<std::int32_t>&,       \
                                             const Buffer<std::int32_t>&, ConstMatrixView<T>,             \
                                             ConstMatrixView<T>, RelationScratch<T, Cpu>, MatrixView<T>); \
  template void relation_sums_coefficient_gradient(const Cpu&, const BlockView<Cpu>&, ConstMatrixView<T>, \
                                                   ConstMatrixView<T>, MatrixView<T>);
ESPALIER_INSTANTIATE(float)
ESPALIER_INSTANTIATE(double)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
