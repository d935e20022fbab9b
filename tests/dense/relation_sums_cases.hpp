// A block with what relation_sums multiplies it with, and what a loop over its entries gives, for
// the tests of both spaces.
#pragma once

#include <gtest/gtest.h>

#include "dense/relation_blocks.hpp"
#include "espalier/dense/relation_sums.hpp"
#include "espalier/sparse/transpose.hpp"
#include "space_arrays.hpp"

namespace espalier {

template <class T>
struct RelationCase {
  Block block;
  Buffer<std::uint8_t> of_entries;
  Matrix<T> a, x, dm;  ///< [R, B], [columns, f], [rows, B f]

  RelationCase() = default;
  RelationCase(const Block& block_, std::int64_t f, std::int64_t relations, std::int64_t bases,
               std::mt19937_64& random)
      : block(block_),
        of_entries(random_relations(block, relations, random)),
        a(random_matrix<T>(relations, bases, random)),
        x(random_matrix<T>(block.columns, f, random)),
        dm(random_matrix<T>(block.rows, bases * f, random)) {}
  BlockView<> view() const { return with_relations<Cpu>(block, of_entries); }
};

template <class T>
struct RelationResults {
  Matrix<T> m, dx, da;

  /// Of numbers that must be overwritten.
  explicit RelationResults(const RelationCase<T>& c) : m(c.dm), dx(c.x), da(c.a) {}
  RelationResults(Matrix<T> m_, Matrix<T> dx_, Matrix<T> da_)
      : m(std::move(m_)), dx(std::move(dx_)), da(std::move(da_)) {}
  bool operator==(const RelationResults& other) const {
    return same_bits(m, other.m) && same_bits(dx, other.dx) && same_bits(da, other.da);
  }
};

/// By the operations, of a view of the block in memory of the space.
template <class T, class Space>
RelationResults<T> results_of(const Space& space, const RelationCase<T>& c, const BlockView<Space>& block) {
  const RelationResults<T> before(c);  // to be overwritten
  const auto a = matrix_on(space, c.a), x = matrix_on(space, c.x), dm = matrix_on(space, c.dm);
  auto m = matrix_on(space, before.m), dx = matrix_on(space, before.dx), da = matrix_on(space, before.da);
  Csr<std::int32_t, Space> transposed;
  Array<Space, std::int32_t> positions;
  Matrix<T, Space> gradients;
  Array<Space, std::int32_t> numbers;
  transpose(space, block, transposed, &positions);
  relation_sums<T>(space, block, a, x, m);
  relation_sums_input_gradient<T>(space, block, transposed, positions, a, dm, {gradients, numbers}, dx);
  relation_sums_coefficient_gradient<T>(space, block, x, dm, da);
  return {matrix_from(space, m), matrix_from(space, dx), matrix_from(space, da)};
}

/// Entry by entry and number by number, in double; with `sizes` the same of all absolute values.
template <class T>
RelationResults<double> by_loops(const RelationCase<T>& c, bool sizes = false) {
  const auto f = c.x.columns;
  RelationResults<double> r{{c.dm.rows, c.dm.columns}, {c.x.rows, f}, {c.a.rows, c.a.columns}};
  for (auto* result : {&r.m, &r.dx, &r.da}) std::ranges::fill(result->data, 0.0);
  const auto of = [&](T number) { return sizes ? std::abs(double{number}) : double{number}; };
  for (std::int64_t v = 0; v < c.block.rows; ++v)
    for (auto e = c.block.row_begin(v); e < c.block.row_end(v); ++e)
      for (std::int64_t b = 0; b < c.a.columns; ++b)
        for (std::int64_t k = 0; k < f; ++k) {
          const auto at = static_cast<std::size_t>(e);
          const std::int64_t u = c.block.indices[at], relation = c.of_entries[at];
          const double value = c.block.has_values() ? of(static_cast<T>(c.block.values[at])) : 1.0,
                       coefficient = of(c.a(relation, b)), number = of(c.x(u, k)),
                       back = of(c.dm(v, b * f + k));
          r.m(v, b * f + k) += coefficient * value * number;
          r.dx(u, k) += coefficient * value * back;
          r.da(relation, b) += value * number * back;
        }
  return r;
}

/// A sum of n products, added in any order, is off by at most (n + 3) roundings of the sum of their
/// sizes.
template <class T>
void expect_within_rounding(const Matrix<T>& result, const Matrix<double>& exact, const Matrix<double>& sizes,
                            std::int64_t terms) {
  ASSERT_TRUE(result.rows == exact.rows && result.columns == exact.columns);
  const double unit = static_cast<double>(terms + 3) * (sizeof(T) == 4 ? 0x1p-24 : 0x1p-52);
  double most = 0;
  for (std::size_t e = 0; e < exact.data.size(); ++e)
    most = std::max(most, std::abs(result.data[e] - exact.data[e]) / (unit * sizes.data[e] + 1e-300));
  EXPECT_LE(most, 1) << "of what rounding explains";
}

template <class T>
void expect_right(const RelationCase<T>& c, const RelationResults<T>& r) {
  const auto exact = by_loops(c), sizes = by_loops(c, true);
  const auto entries = c.block.entries();
  expect_within_rounding(r.m, exact.m, sizes.m, entries);
  expect_within_rounding(r.dx, exact.dx, sizes.dx, entries * c.a.columns);
  expect_within_rounding(r.da, exact.da, sizes.da, entries * c.x.columns);
}

template <class T>
std::string in_words(const RelationCase<T>& c) {
  return fmt::format("{} x {}, {} entries, f {}, {} relations, {} bases, {} bytes", c.block.rows,
                     c.block.columns, c.block.entries(), c.x.columns, c.a.rows, c.a.columns, sizeof(T));
}

}  // namespace espalier
