// ranks: 1
// Laws: matrices that are made together lie in one array, in their order, and none overlaps
// another; apart, each begins at a multiple of 256 bytes but where it follows the one before; what
// is written to one changes no other; the array stays as long as any of them.
#include "espalier/dense/device_matrix.hpp"

#include "dense/device_matrices.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

class DeviceMatrix : public CudaTest {};

// Of awkward sizes, without rows, without columns, following.
const std::vector<MatrixPlace> kPlaces = {{3, 5},       {7, 5, true}, {0, 9}, {1, 64}, {2, 64, true},
                                          {4, 0, true}, {1, 1},       {1, 1}, {33, 70}};

TEST_F(DeviceMatrix, TogetherTheyLieInOrderAndDoNotOverlap) {
  gpu();  // has memory from now on
  for (const bool apart : {false, true}) {
    const auto matrices = matrices_together<float, Cuda>(kPlaces, apart);
    ASSERT_EQ(matrices.size(), kPlaces.size());
    const float* end = matrices.front().data.whole()->data();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(end) % 256, 0u);
    for (std::size_t k = 0; k < matrices.size(); ++k) {
      const auto& matrix = matrices[k];
      EXPECT_EQ(matrix.rows, kPlaces[k].rows);
      EXPECT_EQ(matrix.columns, kPlaces[k].columns);
      EXPECT_EQ(std::ssize(matrix.data), matrix.rows * matrix.columns);
      const auto padding = matrix.data.data() - end;
      if (!apart || kPlaces[k].follows)
        EXPECT_EQ(padding, 0) << k;
      else
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(matrix.data.data()) % 256, 0u) << k;
      EXPECT_TRUE(padding >= 0 && padding < 64) << k;
      end = matrix.data.data() + matrix.data.size();
    }
    EXPECT_LE(end, matrices.front().data.whole()->data() + matrices.front().data.whole()->size());
  }
}

TEST_F(DeviceMatrix, WhatIsWrittenToOneStaysThere) {
  for (const bool apart : {false, true}) {
    auto matrices = matrices_together<float, Cuda>(kPlaces, apart);
    std::mt19937_64 random(test_seed(3));
    std::vector<Matrix<float>> expected;
    for (auto& matrix : matrices) {
      expected.push_back(random_matrix<float>(matrix.rows, matrix.columns, random));
      upload(gpu(), expected.back(), matrix);
    }
    for (std::size_t k = 0; k < matrices.size(); ++k)
      EXPECT_TRUE(same_bits(to_host(gpu(), matrices[k]), expected[k])) << k;
    auto last = std::move(matrices.back());
    matrices.clear();
    EXPECT_TRUE(same_bits(to_host(gpu(), last), expected.back()));
    const auto whole = last.data.whole();
    last.resize(2 * last.rows, last.columns);  // grows: into memory of its own
    EXPECT_EQ(last.data.whole(), nullptr);
    EXPECT_TRUE(last.data.data() < whole->data() || last.data.data() >= whole->data() + whole->size());
  }
}

}  // namespace
}  // namespace espalier
