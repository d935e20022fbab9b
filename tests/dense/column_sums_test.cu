// ranks: 1
// Laws: the sums down columns have the CPU's bits; every term may be kept, once.
#include <cmath>

#include "dense/device_matrices.hpp"
#include "espalier/dense/device_column_sums.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

class ColumnSumsCuda : public CudaTest {};

/// Numbers so far apart that every sum in double is rounded: the order shows.
Matrix<float> far_apart(std::int64_t rows, std::int64_t columns, std::mt19937_64& random) {
  auto z = random_matrix<float>(rows, columns, random);
  for (float& x : z.data) x = std::ldexp(x, static_cast<int>(random() % 80) - 40);
  return z;
}

// A device lambda may not stand in a test's own function, which is private.
void sum_columns(const Cuda& gpu, ConstMatrixView<float, Cuda> z, double* sums) {
  sum_over_rows(
      gpu, z.rows, z.columns,
      [=] __device__(std::int64_t i, std::int64_t j) { return static_cast<double>(z(i, j)); },
      [=] __device__(std::int64_t j, double sum) { sums[j] = sum; });
}

TEST_F(ColumnSumsCuda, HaveTheBitsOfTheCpu) {
  std::mt19937_64 random(test_seed(29));
  for (const std::int64_t rows : {0, 1, 511, 512, 513, 5000})
    for (const std::int64_t columns : {0, 1, 3, 31, 32, 33, 100}) {
      const auto z = far_apart(rows, columns, random);
      std::vector<double> expected(static_cast<std::size_t>(columns));
      sum_over_rows(Cpu{1}, rows, expected, [&](std::int64_t i, double* sum) {
        for (std::int64_t j = 0; j < columns; ++j) sum[j] += static_cast<double>(z(i, j));
      });
      DeviceArray<double> sums(static_cast<std::size_t>(columns));
      const auto on_gpu = to_device(gpu(), z);
      sum_columns(gpu(), on_gpu, sums.data());
      const auto found = download(gpu(), sums);
      EXPECT_TRUE(std::ranges::equal(found, expected)) << rows << " x " << columns;
    }
}

/// Two sums at a time.
struct Both {
  double one, other;
  __device__ void operator+=(const Both& more) {
    one += more.one;
    other += more.other;
  }
};

/// sums [2 * columns]: of x and of 3 x, by column; kept += 3 x.
void sum_both(const Cuda& gpu, ConstMatrixView<float, Cuda> x, MatrixView<double, Cuda> kept, double* sums) {
  const std::int64_t columns = x.columns;
  sum_over_rows<Both>(
      gpu, x.rows, columns,
      [=] __device__(std::int64_t i, std::int64_t j) {
        const auto number = static_cast<double>(x(i, j));
        return Both{number, 3 * number};
      },
      [=] __device__(std::int64_t j, const Both& sum) {
        sums[j] = sum.one;
        sums[columns + j] = sum.other;
      },
      [=] __device__(std::int64_t i, std::int64_t j, const Both& term) { kept(i, j) += term.other; });
}

TEST_F(ColumnSumsCuda, TermsMayBeOfTwoNumbersAndAreKept) {
  std::mt19937_64 random(test_seed(30));
  for (const std::int64_t rows : {0, 1, 63, 64, 65, 513, 1100})
    for (const std::int64_t columns : {1, 31, 33, 64}) {
      const auto z = far_apart(rows, columns, random);
      std::vector<double> expected(static_cast<std::size_t>(2 * columns));
      sum_over_rows(Cpu{1}, rows, expected, [&](std::int64_t i, double* sum) {
        for (std::int64_t j = 0; j < columns; ++j) {
          sum[j] += static_cast<double>(z(i, j));
          sum[columns + j] += 3 * static_cast<double>(z(i, j));
        }
      });
      Matrix<double, Cuda> kept(rows, columns);
      fill_zero(gpu(), kept.data);
      DeviceArray<double> sums(static_cast<std::size_t>(2 * columns));
      sum_both(gpu(), to_device(gpu(), z), kept, sums.data());
      EXPECT_TRUE(std::ranges::equal(download(gpu(), sums), expected)) << rows << " x " << columns;
      const auto terms = to_host(gpu(), kept);
      for (std::size_t e = 0; e < z.data.size(); ++e)
        ASSERT_EQ(terms.data[e], 3 * static_cast<double>(z.data[e])) << "once each: " << e;
    }
}

}  // namespace
}  // namespace espalier
