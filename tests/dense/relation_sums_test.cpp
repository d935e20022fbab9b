// ranks: 1
// Laws: relation sums are what a loop over the entries gives in double, for any shape; their
// gradients are adjoint to them, <M(a, x), dM> = <x, dX> = <a, da>; a row depends on what it names
// only, bit for bit, and no result on the number of threads or on where in common arrays the block
// lies; a block without relations has one; with a = I there is one sparse product for each
// relation.
#include "espalier/dense/relation_sums.hpp"

#include <gtest/gtest.h>

#include "dense/relation_sums_cases.hpp"
#include "espalier/dense/spmm.hpp"
#include "espalier/sparse/transpose.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

template <class T>
using Case = RelationCase<T>;

template <class T>
RelationResults<T> results_of(const Case<T>& c, const BlockView<>& block, int threads = 1) {
  return results_of(Cpu{threads}, c, block);
}

template <class T>
double dot(const Matrix<T>& a, const Matrix<T>& b) {
  double sum = 0;
  for (std::size_t e = 0; e < a.data.size(); ++e)
    sum += static_cast<double>(a.data[e]) * static_cast<double>(b.data[e]);
  return sum;
}

Matrix<double> by_size(const auto& matrix) {
  Matrix<double> sizes(matrix.rows, matrix.columns);
  std::ranges::transform(matrix.data, sizes.data.begin(), [](double x) { return std::abs(x); });
  return sizes;
}

/// The loop's, and adjoint.
template <class T>
void expect_right(const Case<T>& c) {
  SCOPED_TRACE(in_words(c));
  const auto r = results_of(c, c.view());
  expect_right(c, r);
  const auto sizes = by_loops(c, true);
  const double product = dot(r.m, c.dm), size = dot(sizes.m, by_size(c.dm)),
               terms = static_cast<double>(3 + c.block.entries() * c.x.columns * c.a.columns),
               off = terms * size * (sizeof(T) == 4 ? 0x1p-23 : 0x1p-51);
  EXPECT_NEAR(dot(c.x, r.dx), product, off);
  EXPECT_NEAR(dot(c.a, r.da), product, off);
}

// With one column every entry of a row is a repetition; most = 0 leaves all rows empty.
TEST(RelationSums, AgreeWithALoop) {
  std::mt19937_64 random(test_seed(21));
  for (const std::int64_t rows : {0, 1, 2, 40})
    for (const std::int64_t columns : {0, 1, 3, 70})
      for (const int most : {0, 1, 4, 20})
        for (const std::int64_t f : {0, 1, 7, 16, 41, 129, 300})
          for (const auto& [relations, bases] : {std::pair{1, 1}, {22, 8}, {3, 3}, {5, 1}}) {
            Block block = random_block_matrix(rows, columns, most, random);
            if (random() % 4 == 0) block.values.clear();  // all 1
            expect_right(Case<float>(block, f, relations, bases, random));
            expect_right(Case<double>(block, f, relations, bases, random));
          }
}

TEST(RelationSums, ManyRelationsInARow) {
  std::mt19937_64 random(test_seed(22));
  expect_right(Case<double>(random_block_matrix(600, 30, 200, random), 24, 256, 5, random));
}

TEST(RelationSums, WithoutRelationsAllEntriesAreOfRelation0) {
  std::mt19937_64 random(test_seed(23));
  Case<float> c(random_block_matrix(90, 60, 9, random), 33, 4, 3, random);
  std::ranges::fill(c.of_entries, std::uint8_t{0});
  EXPECT_TRUE(results_of(c, c.block) == results_of(c, c.view()));
}

TEST(RelationSums, NeitherThreadsNorThePlaceInCommonArraysMatter) {
  std::mt19937_64 random(test_seed(24));
  for (const bool values : {true, false})
    for (const std::int64_t f : {1, 17, 40, 300})
      for (const std::int64_t bases : {1, 3, 8}) {
        Block block = random_block_matrix(1500, 700, 12, random);
        if (!values) block.values.clear();
        const Case<float> c(block, f, 11, bases, random);
        const SharedBlock shared(block, 1000);
        const auto relations = behind(1000, c.of_entries);
        const auto in_common = with_relations<Cpu>(shared.block, relations);
        const auto expected = results_of(c, c.view());
        for (const int threads : {1, 2, 3, 8}) {
          EXPECT_TRUE(results_of(c, c.view(), threads) == expected) << threads << " threads, f " << f;
          EXPECT_TRUE(results_of(c, in_common, threads) == expected) << threads << " threads, f " << f;
        }
      }
}

TEST(RelationSums, RowsDoNotKnowWhereTheyStand) {
  std::mt19937_64 random(test_seed(25));
  for (const std::int64_t f : {1, 7, 47, 100, 256}) {
    const Case<float> c(random_block_matrix(150, 80, 20, random), f, 6, 4, random);
    Matrix<float> whole(150, 4 * f), alone(1, 4 * f);
    relation_sums<float>(Cpu{2}, c.view(), c.a, c.x, whole);
    for (std::int64_t v = 0; v < 150; ++v) {
      Block row;  // over the rows of X it names, renumbered
      row.rows = 1;
      row.columns = c.block.row_size(v);
      row.values.assign(c.block.row_values(v).begin(), c.block.row_values(v).end());
      Matrix<float> named(row.columns, f);
      for (std::int64_t e = 0; e < row.columns; ++e) {
        row.indices.push_back(static_cast<std::int32_t>(e));
        std::copy_n(c.x.row(c.block.row_indices(v)[static_cast<std::size_t>(e)]), f, named.row(e));
      }
      row.indptr.push_back(row.columns);
      const auto relations = std::span(c.of_entries).subspan(static_cast<std::size_t>(c.block.row_begin(v)));
      relation_sums<float>(Cpu{1}, with_relations<Cpu>(row, relations), c.a, named, alone);
      ASSERT_TRUE(std::equal(alone.data.begin(), alone.data.end(), whole.row(v)))
          << "row " << v << " f " << f;
    }
  }
}

TEST(RelationSums, OfTheUnitMatrixAreOneProductForEachRelation) {
  std::mt19937_64 random(test_seed(26));
  constexpr std::int64_t kRelations = 5, kWidth = 37;
  Case<float> c(random_block_matrix(80, 50, 15, random), kWidth, kRelations, kRelations, random);
  std::ranges::fill(c.a.data, 0.0f);
  for (std::int64_t r = 0; r < kRelations; ++r) c.a(r, r) = 1;
  const auto together = results_of(c, c.view());
  for (int relation = 0; relation < kRelations; ++relation) {
    Block of_relation = c.block;
    for (std::size_t e = 0; e < c.of_entries.size(); ++e)
      if (c.of_entries[e] != relation) of_relation.values[e] = 0;
    Matrix<float> product(80, kWidth);
    spmm<float>(Cpu{1}, of_relation, c.x, product);
    for (std::int64_t v = 0; v < 80; ++v)
      EXPECT_TRUE(std::equal(product.row(v), product.row(v) + kWidth, together.m.row(v) + relation * kWidth))
          << "relation " << relation << " row " << v;
  }
}

}  // namespace
}  // namespace espalier
