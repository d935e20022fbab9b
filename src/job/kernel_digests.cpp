#include "espalier/job/kernel_digests.hpp"

#include <bit>
#include <cmath>

#include "espalier/base/elementary.hpp"
#include "espalier/base/half.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/base/philox.hpp"
#include "espalier/dense/gemm.hpp"
#include "espalier/file/content_digest.hpp"
#include "espalier/train/gradient_reduction.hpp"
#include "espalier/train/optimizer.hpp"

namespace espalier {

namespace {

// A hash of numbers, bit by bit, in order.
class KernelDigest {
 public:
  void add(double x) { state_ = absorb(state_, std::bit_cast<std::int64_t>(x)); }
  void add(float x) { state_ = absorb(state_, std::bit_cast<std::int32_t>(x)); }
  void add(std::uint64_t x) { state_ = absorb(state_, static_cast<std::int64_t>(x)); }
  void add(const Matrix<float>& matrix) {
    for (const float x : matrix.data) add(x);
  }
  std::string text() const { return hex(state_); }

 private:
  std::uint64_t state_ = 0;
};

// Numbers of either sign whose magnitudes differ by up to 2^spread.
Matrix<float> random_matrix(std::int64_t rows, std::int64_t columns, std::uint64_t seed, int spread) {
  Matrix<float> matrix(rows, columns);
  for (std::size_t k = 0; k < matrix.data.size(); ++k) {
    const auto words = random_block({.seed = seed, .row = k}, 0);
    const double magnitude =
        std::ldexp(to_unit_double(words.v[0]), static_cast<int>(words.v[1] % (spread + 1)));
    matrix.data[k] = static_cast<float>(words.v[2] % 2 == 0 ? magnitude : -magnitude);
  }
  return matrix;
}

}  // namespace

std::string digest_of_functions() {
  KernelDigest digest;
  for (int k = 1; k <= 4000; ++k) {
    const double x = k / 128.0;
    for (const double y :
         {exp_of_nonpositive(-x), expm1_of_nonpositive(-x), log_of_positive(x), log1p_of_fraction(1 / x),
          std::sqrt(x), power_of(0.9, k % 500), cosine_of_turn(k / 4000.0)})
      digest.add(y);
    for (const float y :
         {exp_of_nonpositive(-static_cast<float>(x)), expm1_of_nonpositive(-static_cast<float>(x))})
      digest.add(y);
  }
  return digest.text();
}

std::string digest_of_random_numbers() {
  KernelDigest digest;
  for (std::uint64_t row = 0; row < 1000; ++row)
    for (const auto word :
         random_block({.seed = 1, .epoch = 2, .batch = 3, .layer = 4, .row = row}, row % 7).v)
      digest.add(word);
  return digest.text();
}

std::string digest_of_halves() {
  std::vector<Half> all(1 << 16);
  for (std::size_t bits = 0; bits < all.size(); ++bits) all[bits].bits = static_cast<std::uint16_t>(bits);
  std::vector<float> floats(all.size());
  to_floats(all.data(), floats.data(), std::ssize(floats));
  KernelDigest digest;
  for (const float x : floats)
    if (x == x) digest.add(x);
  for (const float x : random_matrix(64, 64, 1, 60).data)
    digest.add(std::uint64_t{to_half(std::ldexp(x, -40)).bits});
  return digest.text();
}

std::string digest_of_dense_products(int threads) {
  const Cpu cpu{threads};
  const auto a = random_matrix(67, 37, 1, 8), b = random_matrix(37, 21, 2, 8),
             c = random_matrix(67, 21, 3, 8);
  Matrix<float> ab(67, 21), ac(37, 21);
  gemm<float>(cpu, a, b, ab);
  gemm_tn<float>(cpu, a, c, ac);
  KernelDigest digest;
  digest.add(ab);
  digest.add(ac);
  return digest.text();
}

std::string digest_of_gradient_sum(const Communicator& world) {
  constexpr int kMinibatches = 7;
  GradientReduction reduction(Cpu{}, world, true);
  for (int k = world.rank(); k < kMinibatches; k += world.size()) {
    const auto gradient = random_matrix(9, 5, static_cast<std::uint64_t>(k), 30);
    reduction.add({&gradient}, 0.25f);
  }
  Matrix<float> sum(9, 5);
  reduction.finish(kMinibatches, {&sum});
  KernelDigest digest;
  digest.add(sum);
  return digest.text();
}

double exact_sum(const Communicator& world) {
  std::vector<double> mine;
  for (int k = 1; k <= 1000; ++k)
    if (k % world.size() == world.rank()) mine.insert(mine.end(), {static_cast<double>(k)});
  if (world.rank() == 0) mine.push_back(0x1p40);
  if (world.rank() == world.size() - 1) mine.push_back(-0x1p40);
  return reproducible_sum(world, mine);
}

std::string digest_of_optimizer(const char* kind) {
  std::vector<Parameter<float>> parameters = {{"weights", 1, true, random_matrix(8, 8, 1, 3)}};
  Optimizer<float> steps(Cpu{}, {.kind = kind, .weight_decay = 0.01}, parameters);
  for (std::uint64_t k = 0; k < 5; ++k) steps.step({}, 0.01, {random_matrix(8, 8, 2 + k, 6)}, parameters);
  KernelDigest digest;
  digest.add(parameters[0].value);
  return digest.text();
}

}  // namespace espalier
