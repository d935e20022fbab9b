// ranks: 1
// Law: the products are those of Eigen in double, within the rounding of their precision, for
// any shape; filled rows are the row, bit for bit.
#include "espalier/dense/gemm.hpp"

#include "dense/device_matrices.hpp"
#include "dense/eigen_oracle.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

class GemmCuda : public CudaTest {};

Matrix<double> sum_of(Matrix<double> product, const Matrix<float>& before, Update update) {
  for (std::size_t e = 0; e < product.data.size(); ++e)
    if (update == Update::kAccumulate) product.data[e] += static_cast<double>(before.data[e]);
  return product;
}

// Numbers are below 1: k products are each off by two roundings of the factors, and k sums by one
// of float32 each.
double tolerance(std::int64_t k, double rounding) {
  const auto terms = static_cast<double>(k + 1);
  return terms * 2 * rounding + terms * terms * 0x1p-24 + 1e-7;
}

void expect_products(const Cuda& gpu, std::int64_t m, std::int64_t n, std::int64_t k, double rounding,
                     std::mt19937_64& random) {
  SCOPED_TRACE(testing::Message() << m << " x " << n << ", depth " << k);
  const auto a = random_matrix<float>(m, k, random), b = random_matrix<float>(k, n, random),
             before = random_matrix<float>(m, n, random), row = random_matrix<float>(1, n, random);
  const auto product = product_by_eigen(a, b);
  const auto device_a = to_device(gpu, a), device_b = to_device(gpu, b), device_row = to_device(gpu, row);
  const auto a_t = to_device(gpu, transposed(a)), b_t = to_device(gpu, transposed(b));
  const double most = tolerance(k, rounding);
  for (const auto update : {Update::kOverwrite, Update::kAccumulate}) {
    const auto expected = sum_of(product, before, update);
    auto c = to_device(gpu, before), c_tn = to_device(gpu, before), c_nt = to_device(gpu, before);
    gemm<float>(gpu, device_a, device_b, c, update);
    gemm_tn<float>(gpu, a_t, device_b, c_tn, update);
    gemm_nt<float>(gpu, device_a, b_t, c_nt, update);
    EXPECT_LE(largest_difference(to_host(gpu, c), expected), most);
    EXPECT_LE(largest_difference(to_host(gpu, c_tn), expected), most);
    EXPECT_LE(largest_difference(to_host(gpu, c_nt), expected), most);
  }
  Matrix<float> rows(m, n);
  for (std::int64_t i = 0; i < m; ++i) std::copy_n(row.row(0), n, rows.row(i));
  auto c = to_device(gpu, before);
  gemm_plus_row<float>(gpu, device_row, device_a, device_b, c);
  EXPECT_LE(largest_difference(to_host(gpu, c), sum_of(product, rows, Update::kAccumulate)), most);
}

TEST_F(GemmCuda, AgreesWithEigen) {
  std::mt19937_64 random(test_seed(5));
  for (const std::int64_t m : {0, 1, 3, 32, 70})
    for (const std::int64_t n : {0, 1, 31, 47})
      for (const std::int64_t k : {0, 1, 33, 100}) expect_products(gpu(), m, n, k, 0, random);
}

TEST_F(GemmCuda, FactorsAreRoundedWhereThatIsAskedFor) {
  std::mt19937_64 random(test_seed(6));
  expect_products(Cuda(0, Precision::kTf32), 20, 30, 40, 0x1p-11, random);
  expect_products(Cuda(0, Precision::kBf16), 20, 30, 40, 0x1p-8, random);
}

// As for cublasLt that knows no algorithm for a shape; emulated only.
TEST_F(GemmCuda, ARowIsAddedAlsoWhereCublasLtRefuses) {
  std::mt19937_64 random(test_seed(7));
  setenv("ESPALIER_EMULATED_REFUSAL", "cublasLtMatmulAlgoGetHeuristic", 1);
  expect_products(gpu(), 20, 30, 40, 0, random);
  unsetenv("ESPALIER_EMULATED_REFUSAL");
}

TEST_F(GemmCuda, OverwritingForgetsWhatIsNotANumber) {
  for (const std::int64_t k : {0, 4}) {
    auto c = to_device(gpu(), filled_matrix<float>(3, 2, NAN));
    gemm<float>(gpu(), to_device(gpu(), filled_matrix(3, k, 0.0f)),
                to_device(gpu(), filled_matrix(k, 2, 1.0f)), c);
    EXPECT_EQ(to_host(gpu(), c).data, filled_matrix(3, 2, 0.0f).data);
  }
}

TEST_F(GemmCuda, FilledRowsAreTheRow) {
  std::mt19937_64 random(test_seed(4));
  const auto fill = [](const auto& space, const auto& row, auto& c) { fill_rows<float>(space, row, c); };
  for (const std::int64_t rows : {0, 1, 90})
    for (const std::int64_t columns : {1, 3, 4, 31, 100, 256}) {
      SCOPED_TRACE(testing::Message() << rows << " x " << columns);
      expect_cpu_bits(gpu(), fill, random_matrix<float>(1, columns, random), Matrix<float>(rows, columns));
    }
}

}  // namespace
}  // namespace espalier
