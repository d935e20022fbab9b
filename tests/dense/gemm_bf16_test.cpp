// ranks: 1
// Laws: a product in bfloat16 is, bit for bit, what the order of bf16_kernels.hpp gives, by every
// implementation, whatever the shape, numbers too small to be normal, infinities and NaNs included;
// a row of A B depends on that row of A and on B only; no product depends on the number of threads;
// and no thread computes otherwise afterwards. The oracle is a loop in double.
#include "../../src/dense/gemm_bf16.hpp"

#include <gtest/gtest.h>

#include <cfloat>
#include <numeric>

#include "dense/eigen_oracle.hpp"
#include "dense/random_matrices.hpp"
#include "espalier/dense/gemm.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

// ---- the oracle ----

/// To nearest, ties to even; what is nearest to a number too small is 0 of its sign. Of a float32
/// number: what double has of it is exact. Of a sum in double: see bf16_portable.cpp.
float rounded_to(double x, int digits) {
  if (!std::isfinite(x)) return static_cast<float>(x);
  int exponent = 0;
  std::frexp(x, &exponent);
  const double unit = std::ldexp(1.0, exponent - digits), nearest = std::nearbyint(x / unit) * unit;
  return std::fabs(nearest) < FLT_MIN ? std::copysign(0.0f, static_cast<float>(std::copysign(1.0, x)))
                                      : static_cast<float>(nearest);
}

double factor_of(float x) {
  return std::fabs(x) < FLT_MIN ? std::copysign(0.0, static_cast<double>(x))
                                : static_cast<double>(rounded_to(static_cast<double>(x), 8));
}

/// start + the sum of a(t) b(t), in blocks of 32.
template <class A, class B>
float sum_by_law(std::int64_t terms, const A& a, const B& b, float start) {
  double sum = std::fabs(start) < FLT_MIN ? std::copysign(0.0, static_cast<double>(start))
                                          : static_cast<double>(start);
  for (std::int64_t begin = 0; begin < terms; begin += 32) {
    double chains[2] = {};
    for (std::int64_t t = begin; t < begin + 32; ++t) {
      const double product = t < terms ? factor_of(a(t)) * factor_of(b(t)) : 0.0;
      chains[t % 2] = static_cast<double>(rounded_to(product + chains[t % 2], 24));
    }
    sum =
        static_cast<double>(rounded_to(sum + static_cast<double>(rounded_to(chains[0] + chains[1], 24)), 24));
  }
  return static_cast<float>(sum);
}

Matrix<float> product_by_law(const Matrix<float>& a, const Matrix<float>& b, const Matrix<float>& start) {
  Matrix<float> c(a.rows, b.columns);
  for (std::int64_t i = 0; i < c.rows; ++i)
    for (std::int64_t j = 0; j < c.columns; ++j)
      c(i, j) = sum_by_law(
          a.columns, [&](std::int64_t t) { return a(i, t); }, [&](std::int64_t t) { return b(t, j); },
          start(start.rows == 1 ? 0 : i, j));
  return c;
}

// ---- numbers ----

enum class Numbers { kUsual, kWide, kSmall, kAtTheEdge, kAnyBits };
constexpr Numbers kNumbers[] = {Numbers::kUsual, Numbers::kWide, Numbers::kSmall, Numbers::kAtTheEdge,
                                Numbers::kAnyBits};

/// Of kSmall products are near the least normal number, of kAtTheEdge near what is rounded up
/// to it.
float number(Numbers kind, std::mt19937_64& random) {
  const auto bits = static_cast<std::uint32_t>(random());
  const float one = std::bit_cast<float>(0x3f800000u | (bits & 0x807fffffu));
  const auto power = [&](int least, int count) {
    return least + static_cast<int>(random() % static_cast<unsigned>(count));
  };
  switch (kind) {
    case Numbers::kUsual:
      return std::ldexp(one, power(-3, 3));
    case Numbers::kWide:
      return std::ldexp(one, power(-30, 60));
    case Numbers::kSmall:  // numbers that are too small among them, and zeros
      return bits % 5 == 0 ? std::copysign(0.0f, one)
                           : std::ldexp(one, bits % 5 == 1 ? power(-149, 25) : power(-68, 12));
    case Numbers::kAtTheEdge:  // few: sums such as 2^-126 - 2^-152, and numbers just below 2^-126
      if (bits % 8 != 0) return 0.0f;
      if (random() % 4 == 0)
        return std::copysign(random() % 2 == 0 ? std::bit_cast<float>(0x00800000u - bits % 256) : 2.0f, one);
      return std::copysign(std::ldexp(1.0f, random() % 2 == 0 ? -63 : power(-77, 16)), one);
    default:
      return std::bit_cast<float>(bits);
  }
}

Matrix<float> matrix_of_numbers(Numbers kind, std::int64_t rows, std::int64_t columns,
                                std::mt19937_64& random) {
  Matrix<float> m(rows, columns);
  for (float& x : m.data) x = number(kind, random);
  return m;
}

std::vector<const bf16::Kernels*> implementations() {
  std::vector<const bf16::Kernels*> all = {&bf16::portable_kernels()};
  if (bf16::amx_kernels() != nullptr) all.push_back(bf16::amx_kernels());
  return all;
}

constexpr Cpu in_bf16(int threads) {
  return {threads, Precision::kBf16};
}

// ---- the order ----

TEST(GemmInBf16, OfAFewTermsByHand) {
  // Even terms: 1 + 2^-24 + 2^-24, each lost; odd ones: 2^-24 + 2^-24, kept until they meet the
  // others. One after the other all four would be lost, in pairs none.
  Matrix<float> a(1, 5), b(5, 1), c(1, 1);
  b.data = {1, 1, 1, 1, 1};
  a.data = {1, 0x1p-24f, 0x1p-24f, 0x1p-24f, 0x1p-24f};
  for (const auto* kernels : implementations()) {
    bf16::multiply(*kernels, Cpu{1}, a, b, false, {}, c);
    EXPECT_EQ(c(0, 0), 1 + 0x1p-23f) << kernels->name;
  }
  // A block is summed before it is added to what came before.
  Matrix<float> long_a(1, 34), long_b(34, 1);
  std::ranges::fill(long_b.data, 1.0f);
  std::ranges::fill(long_a.data, 0.0f);
  long_a(0, 0) = 1, long_a(0, 32) = long_a(0, 33) = 0x1p-24f;
  for (const auto* kernels : implementations()) {
    bf16::multiply(*kernels, Cpu{1}, long_a, long_b, false, {}, c);
    EXPECT_EQ(c(0, 0), 1 + 0x1p-23f) << kernels->name;
  }
}

TEST(GemmInBf16, FactorsAreRounded) {
  struct Case {
    float x, expected;
  };
  const float infinity = std::numeric_limits<float>::infinity();
  // The last of them has upper 16 bits that would be rounded to those of FLT_MIN.
  const Case cases[] = {{1 + 0x1p-8f, 1},  // a tie, to even
                        {1 + 0x3p-8f, 1 + 0x1p-6f}, {1 + 0x1.01p-8f, 1 + 0x1p-7f},
                        {-FLT_MAX, -infinity},      {0x1.fep127f, 0x1.fep127f},
                        {FLT_MIN, FLT_MIN},         {std::nextafter(FLT_MIN, 0.0f), 0}};
  for (const auto& [x, expected] : cases) {
    EXPECT_EQ(to_float(BFloat16{bf16::rounded(x)}), expected) << x;
    EXPECT_EQ(factor_of(x), static_cast<double>(expected)) << x;
  }
  EXPECT_EQ(bf16::rounded(-0x1p-130f), 0x8000);
  EXPECT_TRUE(std::isnan(to_float(BFloat16{bf16::rounded(std::bit_cast<float>(0x7f800001u))})));
}

TEST(GemmInBf16, ByAmx) {
  if (bf16::amx_kernels() == nullptr) GTEST_SKIP() << "no AMX here";
  EXPECT_EQ(&bf16::best_kernels(), bf16::amx_kernels());
}

constexpr std::int64_t kSizes[] = {1, 2, 15, 16, 17, 31, 32, 33, 47, 64, 70};

TEST(GemmInBf16, IsTheLaw) {
  std::mt19937_64 random(test_seed(1));
  const auto any = [&](const auto& sizes) { return sizes[random() % std::size(sizes)]; };
  for (const auto numbers : kNumbers)
    for (int repetition = 0; repetition < 40; ++repetition) {
      const std::int64_t m = any(kSizes), n = any(kSizes), k = any(kSizes);
      const auto a = matrix_of_numbers(numbers, m, k, random), b = matrix_of_numbers(numbers, k, n, random),
                 row = matrix_of_numbers(numbers, 1, n, random),
                 start = matrix_of_numbers(numbers, m, n, random), zeros = filled_matrix<float>(m, n, 0);
      const auto from_zero = product_by_law(a, b, zeros), from_row = product_by_law(a, b, row),
                 from_start = product_by_law(a, b, start);
      const auto at = transposed(a), bt = transposed(b);
      for (const auto* kernels : implementations()) {
        SCOPED_TRACE(testing::Message() << kernels->name << " m " << m << " k " << k << " n " << n
                                        << " numbers " << static_cast<int>(numbers));
        Matrix<float> c(m, n);
        bf16::multiply(*kernels, Cpu{1}, a, b, false, {}, c);
        EXPECT_TRUE(same_numbers(c, from_zero));
        bf16::multiply(*kernels, Cpu{1}, a, bt, true, {row.data.data(), 0}, c);
        EXPECT_TRUE(same_numbers(c, from_row));
        c = start;
        bf16::multiply(*kernels, Cpu{1}, a, b, false, {c.data.data(), n}, c);
        EXPECT_TRUE(same_numbers(c, from_start));
        const bf16::Multiplying multiplying(*kernels);
        bf16::add_transposed_product(*kernels, at, b, 0, k, 0, m, c, false);
        EXPECT_TRUE(same_numbers(c, from_zero));
        c = start;
        bf16::add_transposed_product(*kernels, at, b, 0, k, 0, m, c, true);
        EXPECT_TRUE(same_numbers(c, from_start));
      }
    }
}

TEST(GemmInBf16, ManyTermsOfATransposedProductAreSummedInChunks) {
  std::mt19937_64 random(test_seed(2));
  for (const std::int64_t rows : {300, 1024, 1030, 2500, 40000}) {
    const auto a = random_matrix<float>(rows, 3, random), b = random_matrix<float>(rows, 34, random),
               start = random_matrix<float>(3, 34, random);
    auto expected = start;
    const std::int64_t chunk = std::max<std::int64_t>(1024, (rows + 31) / 32);
    for (std::int64_t i = 0; i < expected.rows; ++i)
      for (std::int64_t j = 0; j < expected.columns; ++j)
        for (std::int64_t begin = 0; begin < rows; begin += chunk) {
          const float sum = sum_by_law(
              std::min(chunk, rows - begin), [&](std::int64_t t) { return a(begin + t, i); },
              [&](std::int64_t t) { return b(begin + t, j); }, rows <= chunk ? expected(i, j) : 0.0f);
          expected(i, j) = rows <= chunk ? sum : expected(i, j) + sum;
        }
    for (const int threads : {1, 2, 3, 7}) {
      auto c = start;
      gemm_tn<float>(in_bf16(threads), a, b, c, Update::kAccumulate);
      EXPECT_TRUE(same_bits(c, expected)) << rows << " rows, " << threads << " threads";
    }
  }
}

// ---- the laws of gemm.hpp ----

TEST(GemmInBf16, ARowDependsOnItselfAlone) {
  std::mt19937_64 random(test_seed(3));
  for (const std::int64_t n : {1, 7, 16, 33, 100})
    for (const std::int64_t k : {1, 33, 100, 256, 602}) {
      const auto a = random_matrix<float>(300, k, random), b = random_matrix<float>(k, n, random);
      Matrix<float> c(300, n);
      gemm<float>(in_bf16(1), a, b, c);
      for (const std::int64_t count : {1, 2, 15, 16, 17, 32, 33, 96, 121, 299}) {
        std::vector<std::int64_t> rows(300);
        std::iota(rows.begin(), rows.end(), 0);
        std::shuffle(rows.begin(), rows.end(), random);
        Matrix<float> some(count, k), product(count, n), expected(count, n);
        for (std::int64_t i = 0; i < count; ++i) {
          std::copy_n(a.row(rows[static_cast<std::size_t>(i)]), k, some.row(i));
          std::copy_n(c.row(rows[static_cast<std::size_t>(i)]), n, expected.row(i));
        }
        gemm<float>(in_bf16(1), some, b, product);
        EXPECT_TRUE(same_bits(product, expected)) << count << " rows, k " << k << " n " << n;
      }
    }
}

TEST(GemmInBf16, ThreadsDoNotMatter) {
  std::mt19937_64 random(test_seed(4));
  for (const std::int64_t rows : {1, 100, 5000}) {
    const auto a = random_matrix<float>(rows, 190, random), b = random_matrix<float>(190, 35, random),
               d = random_matrix<float>(rows, 35, random), row = random_matrix<float>(1, 35, random);
    Matrix<float> c1(rows, 35), c(rows, 35), w1(190, 35), w(190, 35), a1(rows, 190), a2(rows, 190);
    gemm_plus_row<float>(in_bf16(1), row, a, b, c1);
    gemm_tn<float>(in_bf16(1), a, d, w1);
    gemm_nt<float>(in_bf16(1), d, b, a1);
    for (const int threads : {2, 3, 7}) {
      gemm_plus_row<float>(in_bf16(threads), row, a, b, c);
      gemm_tn<float>(in_bf16(threads), a, d, w);
      gemm_nt<float>(in_bf16(threads), d, b, a2);
      EXPECT_TRUE(same_bits(c, c1) && same_bits(w, w1) && same_bits(a2, a1)) << threads << " threads";
    }
  }
}

/// Each factor is off by 2^-9 of itself at most, a product by 2^-8.
TEST(GemmInBf16, IsCloseToTheExactProductAndNotFloat32s) {
  std::mt19937_64 random(test_seed(5));
  const auto a = random_matrix<float>(100, 256, random), b = random_matrix<float>(256, 70, random);
  const auto exact = product_by_eigen(a, b);
  Matrix<float> c(100, 70), in_float(100, 70);
  gemm<float>(in_bf16(2), a, b, c);
  gemm<float>(Cpu{2}, a, b, in_float);
  EXPECT_LT(relative_difference(c, exact, 0), 0x1p-8);
  EXPECT_GT(relative_difference(c, exact, 0), 0x1p-11);
  EXPECT_LT(relative_difference(in_float, exact, 0), 0x1p-20);
}

TEST(GemmInBf16, DoubleStaysDouble) {
  std::mt19937_64 random(test_seed(6));
  const auto a = random_matrix<double>(40, 50, random), b = random_matrix<double>(50, 20, random);
  Matrix<double> c(40, 20), expected(40, 20);
  gemm<double>(Cpu{1}, a, b, expected);
  gemm<double>(in_bf16(1), a, b, c);
  EXPECT_TRUE(same_bits(c, expected));
}

/// A number that only the running program knows.
volatile float least_normal = FLT_MIN;

bool keeps_small_numbers() {
  const float small = least_normal / 4;
  return small * 4 == FLT_MIN;
}

TEST(GemmInBf16, NumbersThatAreSmallAreKeptAfterwards) {
  std::mt19937_64 random(test_seed(7));
  const auto a = random_matrix<float>(1000, 40, random), b = random_matrix<float>(40, 20, random);
  for (const auto* kernels : implementations()) {
    Matrix<float> c(1000, 20);
    bf16::multiply(*kernels, Cpu{3}, a, b, false, {}, c);
    int kept = 0;
#pragma omp parallel num_threads(3) reduction(+ : kept)
    kept += keeps_small_numbers() ? 1 : 0;
    EXPECT_EQ(kept, 3) << kernels->name;
  }
}

}  // namespace
}  // namespace espalier
