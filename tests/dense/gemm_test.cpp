// ranks: 1
// Laws: the products are those of Eigen in double; a row of A B depends on that row of A and on B
// only, bit for bit; no product depends on the number of threads.
#include "espalier/dense/gemm.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "dense/eigen_oracle.hpp"
#include "dense/random_matrices.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

constexpr std::int64_t kWidths[] = {1, 7, 16, 31, 32, 33, 41, 128, 256};
constexpr std::int64_t kDepths[] = {0, 1, 3, 33, 100, 255, 256, 257, 602, 1433};

/// float32 sums of k products of numbers below 1 stay within this of the exact ones.
template <class T>
double tolerance(std::int64_t k) {
  return (sizeof(T) == 4 ? 1e-7 : 1e-15) * static_cast<double>(k + 4);
}

TEST(Gemm, ARowAndNoProductIsTheRow) {
  Matrix<float> row(1, 2), a(3, 0), b(0, 2), c(3, 2);
  row.data = {5, -7};
  c.data = {1, 2, 3, 4, 5, 6};
  gemm_plus_row<float>(Cpu{1}, row, a, b, c);
  EXPECT_EQ(c.data, (Buffer<float>{5, -7, 5, -7, 5, -7}));
}

template <class T>
void expect_products(std::int64_t m, std::int64_t k, std::int64_t n, std::mt19937_64& random) {
  SCOPED_TRACE(testing::Message() << "m " << m << " k " << k << " n " << n << " bytes " << sizeof(T));
  const auto a = random_matrix<T>(m, k, random), b = random_matrix<T>(k, n, random),
             start = random_matrix<T>(m, n, random);
  const auto at = transposed(a), bt = transposed(b);
  auto expected = product_by_eigen(a, b);
  Matrix<T> c(m, n);
  for (const Update update : {Update::kOverwrite, Update::kAccumulate}) {
    if (update == Update::kAccumulate)
      for (std::size_t e = 0; e < c.data.size(); ++e) expected.data[e] += static_cast<double>(start.data[e]);
    c = start;
    gemm<T>(Cpu{1}, a, b, c, update);
    EXPECT_LT(largest_difference(c, expected), tolerance<T>(k));
    c = start;
    gemm_nt<T>(Cpu{1}, a, bt, c, update);
    EXPECT_LT(largest_difference(c, expected), tolerance<T>(k));
    c = start;
    gemm_tn<T>(Cpu{1}, at, b, c, update);
    EXPECT_LT(largest_difference(c, expected), tolerance<T>(k));
  }
}

TEST(Gemm, AgreesWithEigen) {
  std::mt19937_64 random(test_seed(1));
  for (const std::int64_t n : {1, 7, 16, 33, 41, 100})
    for (const std::int64_t k : {0, 1, 33, 256, 602})
      for (const std::int64_t m : {0, 1, 5, 12, 13, 131}) {
        expect_products<float>(m, k, n, random);
        expect_products<double>(m, k, n, random);
      }
  expect_products<float>(9, 5000, 17, random);  // several chunks of gemm_tn
}

TEST(Gemm, RowsDoNotKnowWhereTheyStand) {
  std::mt19937_64 random(test_seed(2));
  constexpr std::int64_t kRows = 300;
  for (const std::int64_t n : kWidths)
    for (const std::int64_t k : kDepths) {
      const auto a = random_matrix<float>(kRows, k, random), b = random_matrix<float>(k, n, random);
      const auto bt = transposed(b);
      Matrix<float> whole(kRows, n), whole_nt(kRows, n);
      gemm<float>(Cpu{1}, a, b, whole);
      gemm_nt<float>(Cpu{1}, a, bt, whole_nt);
      EXPECT_TRUE(same_bits(whole, whole_nt));
      for (const std::int64_t count : {1, 1, 2, 11, 12, 13, 40, 121, 299}) {
        std::vector<std::int64_t> picked(kRows);  // some rows in any order
        std::iota(picked.begin(), picked.end(), 0);
        std::shuffle(picked.begin(), picked.end(), random);
        Matrix<float> part(count, k), product(count, n), expected(count, n);
        for (std::int64_t i = 0; i < count; ++i) {
          const std::int64_t from = picked[static_cast<std::size_t>(i)];
          std::copy_n(a.row(from), k, part.row(i));
          std::copy_n(whole.row(from), n, expected.row(i));
        }
        gemm<float>(Cpu{1}, part, b, product);
        EXPECT_TRUE(same_bits(product, expected)) << count << " rows, k " << k << " n " << n;
      }
    }
}

TEST(Gemm, EqualRowsGiveEqualRows) {
  // What BLAS fails.
  std::mt19937_64 random(test_seed(3));
  for (const std::int64_t n : kWidths)
    for (const std::int64_t k : kDepths) {
      const auto row = random_matrix<double>(1, k, random), b = random_matrix<double>(k, n, random);
      Matrix<double> a(67, k), c(67, n);
      for (std::int64_t i = 0; i < a.rows; ++i) std::copy_n(row.row(0), k, a.row(i));
      gemm<double>(Cpu{1}, a, b, c);
      for (std::int64_t i = 1; i < a.rows; ++i) EXPECT_TRUE(std::equal(c.row(0), c.row(1), c.row(i)));
    }
}

TEST(Gemm, ThreadsDoNotMatter) {
  std::mt19937_64 random(test_seed(4));
  for (const std::int64_t rows : {1, 100, 5000, 40000}) {
    const auto a = random_matrix<float>(rows, 19, random), b = random_matrix<float>(19, 35, random);
    const auto d = random_matrix<float>(rows, 35, random);
    Matrix<float> c1(rows, 35), c(rows, 35), w1(19, 35), w(19, 35), a1(rows, 19), a2(rows, 19);
    gemm<float>(Cpu{1}, a, b, c1);
    gemm_tn<float>(Cpu{1}, a, d, w1);
    gemm_nt<float>(Cpu{1}, d, b, a1);
    for (const int threads : {2, 3, 7}) {
      gemm<float>(Cpu{threads}, a, b, c);
      gemm_tn<float>(Cpu{threads}, a, d, w);
      gemm_nt<float>(Cpu{threads}, d, b, a2);
      EXPECT_TRUE(same_bits(c, c1) && same_bits(w, w1) && same_bits(a2, a1)) << threads << " threads";
    }
  }
}

}  // namespace
}  // namespace espalier
