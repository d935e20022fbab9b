// ranks: 1
// Laws: what stands between and around layers (activation.hpp, jumping.hpp, own_rows.hpp) has the
// CPU's bits on a GPU, but for the rounding of exp and the order of the sum that is the gradient
// of GIN's eps.
#include "dense/device_matrices.hpp"
#include "espalier/nn/between_layers.hpp"
#include "espalier/nn/own_rows.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

class BetweenLayersCuda : public CudaTest {};

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
      auto device_h = to_device(gpu(), h);
      elu<float>(Cpu{1}, h);
      elu<float>(gpu(), device_h);
      const auto found = to_host(gpu(), device_h);
      for (std::size_t e = 0; e < h.data.size(); ++e) {
        EXPECT_EQ(std::isnan(found.data[e]), std::isnan(h.data[e]));
        if (!std::isnan(h.data[e])) EXPECT_NEAR(found.data[e], h.data[e], 4 * 0x1p-24 * std::abs(h.data[e]));
        if (std::isnan(h.data[e])) h.data[e] = 0;
      }
      const auto backward = [](const auto& space, const auto& result, auto& gradient, auto& sums) {
        elu_backward<float>(space, result, 1.25f, gradient, &sums);
      };
      expect_cpu_bits(gpu(), backward, h, random_matrix<float>(rows, columns, random),
                      Matrix<float>(1, columns));
    }
}

TEST_F(BetweenLayersCuda, LayersStandSideBySide) {
  std::mt19937_64 random(test_seed(4));
  const auto operation = [](const auto& space, const auto& h, auto& j, auto& gradient) {
    place_columns<float>(space, h, 6, j);
    add_columns<float>(space, j, 4, gradient);
  };
  for (const std::int64_t rows : {0, 1, 70})
    expect_cpu_bits(gpu(), operation, random_matrix<float>(rows, 5, random),
                    random_matrix<float>(rows, 12, random), random_matrix<float>(rows, 5, random));
}

TEST_F(BetweenLayersCuda, TheFirstOfTheLargestLayersCounts) {
  std::mt19937_64 random(test_seed(5));
  const auto operation = [](const auto& space, const auto& first, const auto& second, const auto& third,
                            const auto& dj, auto& j, auto& winners, auto& gradient) {
    int number = 0;
    for (const auto* h : {&first, &second, &third}) take_larger<float>(space, *h, ++number, j, winners);
    for (const int from : {3, 1}) add_where_larger<float>(space, dj, from, winners, gradient);
  };
  const auto rounded = [&](std::int64_t rows) {  // many are equal
    auto h = awkward_matrix(rows, 9, random);
    for (float& x : h.data) x = std::round(x);
    return h;
  };
  for (const std::int64_t rows : {0, 1, 70})
    expect_cpu_bits(gpu(), operation, rounded(rows), rounded(rows), rounded(rows),
                    random_matrix<float>(rows, 9, random), Matrix<float>(rows, 9), Buffer<std::int32_t>(),
                    random_matrix<float>(rows, 9, random));
}

TEST_F(BetweenLayersCuda, OwnRowsAreTheCpus) {
  std::mt19937_64 random(test_seed(6));
  const auto operation = [](const auto& space, const auto& x, const auto& eps, auto& y) {
    add_rows<float>(space, x, y);
    add_own_rows<float>(space, eps, x, y);
  };
  for (const std::int64_t rows : {0, 1, 600})
    for (const std::int64_t columns : {1, 40}) {
      const auto x = random_matrix<float>(rows, columns, random),
                 y = random_matrix<float>(rows, columns, random);
      expect_cpu_bits(gpu(), operation, x, random_matrix<float>(1, 1, random), y);
      Matrix<float> sum(1, 1);
      Matrix<float, Cuda> device_sum(1, 1);
      product_of_own_rows<float>(Cpu{1}, x, y, sum);
      product_of_own_rows<float>(gpu(), to_device(gpu(), x), to_device(gpu(), y), device_sum);
      // Both sums are exact but for double's rounding; then each is rounded once.
      EXPECT_NEAR(to_host(gpu(), device_sum).data[0], sum.data[0], 0x1p-23 * std::abs(sum.data[0]) + 1e-9);
    }
}

}  // namespace
}  // namespace espalier
