// ranks: 1
// Law: the sums down columns have the CPU's bits.
#include "dense/device_matrices.hpp"
#include "espalier/dense/device_column_sums.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

class ColumnSumsCuda : public CudaTest {};

TEST_F(ColumnSumsCuda, HaveTheBitsOfTheCpu) {
  std::mt19937_64 random(test_seed(29));
  for (const std::int64_t rows : {0, 1, 511, 512, 513, 5000})
    for (const std::int64_t columns : {0, 1, 3, 31, 32, 33, 100}) {
      const auto z = random_matrix<float>(rows, columns, random);
      std::vector<double> expected(static_cast<std::size_t>(columns));
      sum_over_rows(Cpu{1}, rows, expected, [&](std::int64_t i, double* sum) {
        for (std::int64_t j = 0; j < columns; ++j) sum[j] += static_cast<double>(z(i, j));
      });
      DeviceArray<double> sums(static_cast<std::size_t>(columns));
      sum_columns(gpu(), to_device(gpu(), z), sums.data());
      const auto found = download(gpu(), sums);
      EXPECT_TRUE(std::ranges::equal(found, expected)) << rows << " x " << columns;
    }
}

}  // namespace
}  // namespace espalier
