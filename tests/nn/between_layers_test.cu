// ranks: 1
// Laws: what stands between and around layers (activation.hpp, jumping.hpp, own_rows.hpp) has the
// CPU's bits on a GPU, but for the rounding of exp and the order of the sum that is the gradient
// of GIN's eps.
#include "dense/device_matrices.hpp"
#include "espalier/nn/activation.hpp"
#include "espalier/nn/jumping.hpp"
#include "espalier/nn/own_rows.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

class BetweenLayersCuda : public CudaTest {
 protected:
  void expect_bits(const Matrix<float, Cuda>& m, const Matrix<float>& expected) {
    EXPECT_TRUE(same_bits(to_host(gpu(), m), expected));
  }
};

/// Numbers of both signs, 0, -0 and one NaN.
Matrix<float> awkward_matrix(std::int64_t rows, std::int64_t columns, std::mt19937_64& random) {
  auto m = random_matrix<float>(rows, columns, random);
  for (float& x : m.data) {
    x *= 3;
    if (random() % 8 == 0) x = random() % 2 == 0 ? 0.0f : -0.0f;
  }
  if (!m.data.empty()) m.data[random() % m.data.size()] = NAN;
  return m;
}

TEST_F(BetweenLayersCuda, EluIsTheCpus) {
  std::mt19937_64 random(test_seed(3));
  for (const std::int64_t rows : {0, 1, 300})
    for (const std::int64_t columns : {1, 33}) {
      auto h = awkward_matrix(rows, columns, random);
      auto gradient = random_matrix<float>(rows, columns, random);
      auto device_h = to_device(gpu(), h);
      auto device_gradient = to_device(gpu(), gradient);
      elu<float>(Cpu{1}, h);
      elu<float>(gpu(), device_h);
      const auto found = to_host(gpu(), device_h);
      for (std::size_t e = 0; e < h.data.size(); ++e) {
        EXPECT_EQ(std::isnan(found.data[e]), std::isnan(h.data[e]));
        if (!std::isnan(h.data[e])) EXPECT_NEAR(found.data[e], h.data[e], 4 * 0x1p-24 * std::abs(h.data[e]));
        if (std::isnan(h.data[e])) h.data[e] = 0;
      }
      device_h = to_device(gpu(), h);
      Matrix<float> sums(1, columns);
      Matrix<float, Cuda> device_sums(1, columns);
      elu_backward<float>(Cpu{1}, h, 1.25f, gradient, &sums);
      elu_backward<float>(gpu(), device_h, 1.25f, device_gradient, &device_sums);
      expect_bits(device_gradient, gradient);
      expect_bits(device_sums, sums);
    }
}

TEST_F(BetweenLayersCuda, LayersStandSideBySide) {
  std::mt19937_64 random(test_seed(4));
  for (const std::int64_t rows : {0, 1, 70}) {
    Matrix<float> j = random_matrix<float>(rows, 12, random),
                  gradient = random_matrix<float>(rows, 5, random);
    const auto h = random_matrix<float>(rows, 5, random);
    auto device_j = to_device(gpu(), j);
    auto device_gradient = to_device(gpu(), gradient);
    place_columns<float>(Cpu{1}, h, 6, j);
    place_columns<float>(gpu(), to_device(gpu(), h), 6, device_j);
    expect_bits(device_j, j);
    add_columns<float>(Cpu{1}, j, 4, gradient);
    add_columns<float>(gpu(), device_j, 4, device_gradient);
    expect_bits(device_gradient, gradient);
  }
}

TEST_F(BetweenLayersCuda, TheFirstOfTheLargestLayersCounts) {
  std::mt19937_64 random(test_seed(5));
  for (const std::int64_t rows : {0, 1, 70}) {
    Matrix<float> j(rows, 9), gradient = random_matrix<float>(rows, 9, random);
    Matrix<float, Cuda> device_j(rows, 9), device_gradient = to_device(gpu(), gradient);
    Buffer<std::int32_t> winners;
    DeviceArray<std::int32_t> device_winners;
    for (const int number : {1, 2, 3}) {
      auto h = awkward_matrix(rows, 9, random);
      for (float& x : h.data) x = std::round(x);  // many are equal
      take_larger<float>(Cpu{1}, h, number, j, winners);
      take_larger<float>(gpu(), to_device(gpu(), h), number, device_j, device_winners);
    }
    expect_bits(device_j, j);
    EXPECT_EQ(download(gpu(), device_winners), winners);
    const auto dj = random_matrix<float>(rows, 9, random);
    for (const int number : {3, 1}) {
      add_where_larger<float>(Cpu{1}, dj, number, winners, gradient);
      add_where_larger<float>(gpu(), to_device(gpu(), dj), number, device_winners, device_gradient);
    }
    expect_bits(device_gradient, gradient);
  }
}

TEST_F(BetweenLayersCuda, OwnRowsAreTheCpus) {
  std::mt19937_64 random(test_seed(6));
  for (const std::int64_t rows : {0, 1, 600})
    for (const std::int64_t columns : {1, 40}) {
      const auto x = random_matrix<float>(rows, columns, random), eps = random_matrix<float>(1, 1, random);
      auto y = random_matrix<float>(rows, columns, random);
      const auto device_x = to_device(gpu(), x);
      auto device_y = to_device(gpu(), y);
      add_rows<float>(Cpu{1}, x, y);
      add_rows<float>(gpu(), device_x, device_y);
      add_own_rows<float>(Cpu{1}, eps, x, y);
      add_own_rows<float>(gpu(), to_device(gpu(), eps), device_x, device_y);
      expect_bits(device_y, y);
      Matrix<float> sum(1, 1);
      Matrix<float, Cuda> device_sum(1, 1);
      product_of_own_rows<float>(Cpu{1}, x, y, sum);
      product_of_own_rows<float>(gpu(), device_x, device_y, device_sum);
      // Both sums are exact but for double's rounding; then each is rounded once.
      EXPECT_NEAR(to_host(gpu(), device_sum).data[0], sum.data[0], 0x1p-23 * std::abs(sum.data[0]) + 1e-9);
    }
}

}  // namespace
}  // namespace espalier
