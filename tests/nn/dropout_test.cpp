// ranks: 1
// Laws: a mask is a function of its key, of row and column only; it drops the asked fraction and
// keeps the expectation; forward and backward share it; rate 0 is ReLU. Threads: layer_test.cpp.
#include "espalier/nn/dropout.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "dense/random_matrices.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

const RandomStream kStream{7, Purpose::kDropout, 2, 5, 1, 0};

Matrix<float> ones(std::int64_t rows, std::int64_t columns) {
  return filled_matrix(rows, columns, 1.0f);
}

TEST(Dropout, DropsTheAskedFractionAndKeepsTheExpectation) {
  for (const double rate : {0.1, 0.5, 0.8}) {
    Matrix<float> h;
    dropout<float>(Cpu{1}, kStream, rate, ones(1000, 333), h);
    double kept = 0, sum = 0;
    for (const float x : h.data) {
      EXPECT_TRUE(x == 0.0f || x == static_cast<float>(1 / (1 - std::round(rate * 0x1p16) * 0x1p-16)));
      kept += x != 0;
      sum += x;
    }
    const auto count = static_cast<double>(h.data.size());
    const double deviation = std::sqrt(rate * (1 - rate) / count);
    EXPECT_NEAR(kept / count, 1 - rate, 4 * deviation);
    EXPECT_NEAR(sum / count, 1, 4 * deviation / (1 - rate));
  }
}

TEST(Dropout, TheMaskIsTheDocumentedOne) {
  // Element j of row i: 16 bits of word j / 2 % 4 of block j / 8 of the row's stream, low half
  // first. The widths make groups of blocks that are drawn together, full ones and not.
  for (const std::int64_t width : {3, 101, 128, 300}) {
    Matrix<float> h;
    dropout<float>(Cpu{1}, kStream, 0.3, ones(200, width), h);
    for (std::int64_t i = 0; i < 200; ++i)
      for (std::int64_t j = 0; j < width; ++j) {
        RandomStream row = kStream;
        row.row = static_cast<std::uint64_t>(i);
        const auto word = random32(row, static_cast<std::uint64_t>(j / 2));
        EXPECT_EQ(h(i, j) != 0, (j % 2 == 0 ? word & 0xffffu : word >> 16) >= std::round(0.3 * 65536));
      }
  }
}

TEST(Dropout, TheMaskDependsOnItsKeyRowAndColumnOnly) {
  Matrix<float> wide, narrow;
  dropout<float>(Cpu{1}, kStream, 0.5, ones(50, 64), wide);
  dropout<float>(Cpu{1}, kStream, 0.5, ones(20, 13), narrow);
  for (std::int64_t i = 0; i < 20; ++i)
    for (std::int64_t j = 0; j < 13; ++j) EXPECT_EQ(narrow(i, j), wide(i, j));
  for (int key = 0; key < 4; ++key) {
    RandomStream other = kStream;
    ++(key == 0 ? other.seed : key == 1 ? other.epoch : key == 2 ? other.batch : other.layer);
    Matrix<float> h;
    dropout<float>(Cpu{1}, other, 0.5, ones(50, 64), h);
    EXPECT_FALSE(same_bits(h, wide)) << "key " << key;
  }
}

TEST(Dropout, SparseRowsGetTheSameMask) {
  std::mt19937_64 random(test_seed(3));
  auto sparse = random_matrix<float>(40, 100, random);
  for (auto& x : sparse.data) x = random() % 20 == 0 ? x : 0.0f;
  Matrix<float> mask, h;
  dropout<float>(Cpu{1}, kStream, 0.5, ones(40, 100), mask);
  dropout<float>(Cpu{1}, kStream, 0.5, sparse, h);
  for (std::size_t e = 0; e < h.data.size(); ++e) EXPECT_EQ(h.data[e], mask.data[e] * sparse.data[e]);
}

TEST(ReluDropout, BackwardUsesTheMaskOfForward) {
  std::mt19937_64 random(test_seed(4));
  const auto z = random_matrix<double>(70, 45, random), above = random_matrix<double>(70, 45, random);
  Matrix<float> mask;
  dropout<float>(Cpu{1}, kStream, 0.4, ones(70, 45), mask);
  auto h = z, gradient = above;
  relu_dropout<double>(Cpu{1}, kStream, 0.4, h);
  auto sums = Matrix<double>(1, 45), expected = filled_matrix(1, 45, 0.0);
  relu_dropout_backward<double>(Cpu{1}, 0.4, h, gradient, &sums);
  const double scale = 0x1p16 / (0x1p16 - std::round(0.4 * 0x1p16));
  for (std::size_t e = 0; e < h.data.size(); ++e) {
    const bool passes = z.data[e] > 0 && mask.data[e] != 0;
    EXPECT_DOUBLE_EQ(h.data[e], passes ? z.data[e] * scale : 0.0);
    EXPECT_DOUBLE_EQ(gradient.data[e], passes ? above.data[e] * scale : 0.0);
  }
  for (std::int64_t i = 0; i < 70; ++i)
    for (std::int64_t j = 0; j < 45; ++j) expected(0, j) += gradient(i, j);
  EXPECT_TRUE(same_bits(sums, expected)) << "fewer rows than a chunk: their order";
}

TEST(ReluDropout, RateZeroIsRelu) {
  Matrix<float> h(1, 5), gradient = ones(1, 5);
  h.data = {-1, 0, 2, std::numeric_limits<float>::quiet_NaN(), -0.5f};
  relu_dropout<float>(Cpu{1}, kStream, 0.0, h);
  EXPECT_EQ(h.data[0], 0);
  EXPECT_EQ(h.data[1], 0);
  EXPECT_EQ(h.data[2], 2);
  EXPECT_TRUE(std::isnan(h.data[3])) << "a diverged run must show";
  relu_dropout_backward<float>(Cpu{1}, 0.0, h, gradient);
  EXPECT_EQ(gradient.data, (Buffer<float>{0, 0, 1, 0, 0}));
}

}  // namespace
}  // namespace espalier
