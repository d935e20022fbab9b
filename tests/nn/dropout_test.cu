// ranks: 1
// Laws: the bits of dropout on a GPU are the CPU's, masks and sums over the rows included, for any
// shape, alignment and contents, but for those of a NaN.
#include "espalier/nn/dropout.hpp"

#include <limits>

#include "dense/device_matrices.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

class DropoutCuda : public CudaTest {};

constexpr std::int64_t kWidths[] = {1, 3, 4, 7, 8, 9, 12, 31, 32, 33, 100, 256};

/// Numbers of both signs, a quarter of them 0 or -0, half of the rows' eights empty, one NaN.
Matrix<float> matrix_with_zeros(std::int64_t rows, std::int64_t columns, std::mt19937_64& random) {
  auto m = random_matrix<float>(rows, columns, random);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j)
      if (random() % 4 == 0 || (i + j / 8) % 2 == 0) m(i, j) = random() % 2 == 0 ? 0.0f : -0.0f;
  if (!m.data.empty()) m.data[random() % m.data.size()] = std::numeric_limits<float>::quiet_NaN();
  return m;
}

void expect_numbers_of_the_cpu(const Cuda& gpu, const Matrix<float>& in, double rate, std::size_t offset) {
  SCOPED_TRACE(testing::Message() << in.rows << " x " << in.columns << ", rate " << rate << ", offset "
                                  << offset);
  const RandomStream stream{7, Purpose::kDropout, 2, 5, 1, 0};
  Matrix<float> dropped, above = in;
  dropout<float>(Cpu{1}, stream, rate, in, dropped);
  for (std::size_t e = 0; e < above.data.size(); ++e) above.data[e] = static_cast<float>(e % 17) - 8;
  auto activated = in, gradient = above;
  Matrix<float> sums(1, in.columns);
  relu_dropout<float>(Cpu{1}, stream, rate, activated);
  relu_dropout_backward<float>(Cpu{1}, rate, activated, gradient, &sums);

  ShiftedDeviceMatrix<float> device_in(gpu, in, offset), device_above(gpu, above, offset),
      again(gpu, above, offset);
  Matrix<float, Cuda> device_dropped, device_sums(1, in.columns);
  dropout<float>(gpu, stream, rate, device_in.view, device_dropped);
  EXPECT_TRUE(same_numbers(to_host(gpu, device_dropped), dropped));
  relu_dropout<float>(gpu, stream, rate, device_in.view);
  EXPECT_TRUE(same_numbers(device_in.back(gpu), activated));
  relu_dropout_backward<float>(gpu, rate, device_in.view, device_above.view, &device_sums);
  EXPECT_TRUE(same_numbers(device_above.back(gpu), gradient));
  EXPECT_TRUE(same_numbers(to_host(gpu, device_sums), sums));
  relu_dropout_backward<float>(gpu, rate, device_in.view, again.view);
  EXPECT_TRUE(same_numbers(again.back(gpu), gradient));
}

TEST(SameNumbers, ANanIsAsGoodAsAnotherAndNothingElseIs) {
  const auto of_nan = [](std::uint32_t bits) {
    Matrix<float> m(1, 2);
    m.data = {1, std::bit_cast<float>(bits)};
    return m;
  };
  for (const std::uint32_t nan : {0x7fffffffu, 0xffc00000u, 0x7fc00001u})
    EXPECT_TRUE(same_numbers(of_nan(nan), of_nan(0x7fc00000u)));
  for (const std::uint32_t number : {0x7f800000u, 0u, 0x80000000u, 0x3f800001u}) {
    EXPECT_FALSE(same_numbers(of_nan(number), of_nan(0x7fc00000u)));
    EXPECT_FALSE(same_numbers(of_nan(0x7fc00000u), of_nan(number)));
    EXPECT_FALSE(same_numbers(of_nan(number), of_nan(number ^ 0x80000000u)));
    EXPECT_TRUE(same_numbers(of_nan(number), of_nan(number)));
  }
}

TEST_F(DropoutCuda, HasTheBitsOfTheCpu) {
  std::mt19937_64 random(test_seed(3));
  for (const std::int64_t rows : {0, 1, 70})
    for (const std::int64_t columns : kWidths)
      for (const double rate : {0.0, 0.4})
        for (const std::size_t offset : {0, 1})
          expect_numbers_of_the_cpu(gpu(), matrix_with_zeros(rows, columns, random), rate, offset);
}

TEST_F(DropoutCuda, KeepsWhatItShouldOfMatricesOfMoreThanOneBlock) {
  std::mt19937_64 random(test_seed(4));
  expect_numbers_of_the_cpu(gpu(), random_matrix<float>(3000, 41, random), 0.5, 0);
  expect_numbers_of_the_cpu(gpu(), random_matrix<float>(700, 256, random), 0.999, 0);
}

}  // namespace
}  // namespace espalier
