#include "espalier/base/arithmetic_rules.hpp"

#include <cfenv>
#include <cmath>
#include <iterator>
#include <limits>

namespace espalier {

namespace {

constexpr int kTerms = 64;  // several vectors of any machine

template <class T>
T opaque(T x) {
  volatile T memory = x;
  return memory;
}

template <class T>
constexpr T kEpsilon = std::numeric_limits<T>::epsilon();

// ---- the operations ----

template <class T>
[[gnu::noinline]] T product_and_sum(T a, T b, T c) {
  return a * b + c;
}
template <class T>
[[gnu::noinline]] void products_and_sums(T a, const T* b, T* c) {
  for (int i = 0; i < kTerms; ++i) c[i] += a * b[i];
}
template <class T>
[[gnu::noinline]] T sum_less_first(T a, T b) {
  return (a + b) - a;
}
template <class T>
[[gnu::noinline]] T sum_of(const T* x) {
  T sum = 0;
  for (int i = 0; i < kTerms; ++i) sum += x[i];
  return sum;
}
template <class T>
[[gnu::noinline]] void divide(T* x, T by) {
  for (int i = 0; i < kTerms; ++i) x[i] /= by;
}
template <class T>
[[gnu::noinline]] bool equals(T x, T y) {
  return x == y;
}
template <class T>
[[gnu::noinline]] bool is_below(T x, T y) {
  return x < y;
}
template <class T>
[[gnu::noinline]] T plus_zero(T x) {
  return x + T{0};
}
template <class T>
[[gnu::noinline]] T half_of(T x) {
  return x * static_cast<T>(0.5);
}
template <class T>
[[gnu::noinline]] T sum(T x, T y) {
  return x + y;
}

// ---- the rules ----

// (1 + e)(1 - e) - 1 is -e^2 exactly, and 0 where the product is rounded first.
template <class T>
bool products_are_rounded() {
  const T a = opaque(1 + kEpsilon<T>), b = opaque(1 - kEpsilon<T>), c = opaque(T{-1});
  T factors[kTerms], sums[kTerms];
  for (int i = 0; i < kTerms; ++i) {
    factors[i] = b;
    sums[i] = c;
  }
  products_and_sums(a, factors, sums);
  bool good = product_and_sum(a, b, c) == 0;
  for (const T x : sums) good = good && x == 0;
  return good;
}

template <class T>
bool fused_is_exact() {
  const T a = opaque(1 + kEpsilon<T>), b = opaque(1 - kEpsilon<T>), c = opaque(T{-1});
  return std::fma(a, b, c) == -kEpsilon<T> * kEpsilon<T>;
}

// 1 swallows quarters of its last place one by one; together they would count.
template <class T>
bool sums_are_in_order() {
  T terms[kTerms];
  for (T& x : terms) x = opaque(kEpsilon<T> / 4);
  terms[0] = opaque(T{1});
  return sum_less_first(terms[0], terms[1]) == 0 && sum_of(terms) == 1;
}

// Is no neighbour of q nearer to x / by? What is left of x is exact.
template <class T>
bool is_nearest(T q, T x, T by) {
  const auto left = [&](T of) { return std::fabs(std::fma(-of, by, x)); };
  return left(q) <= left(std::nextafter(q, T{0})) && left(q) <= left(std::nextafter(q, 2 * q));
}
template <class T>
bool quotients_are_rounded() {
  bool good = true;
  for (const int by : {3, 7, 49, 1000003}) {
    T quotients[kTerms];
    for (int i = 0; i < kTerms; ++i) quotients[i] = opaque(static_cast<T>(i + 1));
    divide(quotients, opaque(static_cast<T>(by)));
    for (int i = 0; i < kTerms; ++i)
      good = good && is_nearest(quotients[i], static_cast<T>(i + 1), static_cast<T>(by));
  }
  return good;
}

// No number equals itself that is none, infinity is a number, and -0 + 0 is 0. What is a sign is
// asked of the bits.
template <class T>
bool special_values_count() {
  const T zero = opaque(T{0}), infinity = opaque(std::numeric_limits<T>::infinity());
  const T nan = opaque(std::numeric_limits<T>::quiet_NaN());
  return !equals(nan, nan) && !is_below(nan, zero) && !is_below(zero, nan) &&
         is_below(opaque(std::numeric_limits<T>::max()), infinity) &&
         __builtin_signbit(plus_zero(-zero)) == 0;
}

template <class T>
bool denormals_stay() {
  const T smallest = opaque(std::numeric_limits<T>::denorm_min());
  const T half = opaque(half_of(opaque(std::numeric_limits<T>::min())));
  return is_below(T{0}, half) && is_below(T{0}, smallest) &&
         equals(sum(half, half), opaque(std::numeric_limits<T>::min()));
}

// A quarter of the last place never counts, three quarters always.
template <class T>
bool rounds_to_nearest() {
  bool good = std::fegetround() == FE_TONEAREST;
  for (const T sign : {T{1}, T{-1}}) {
    const T one = opaque(sign);
    good = good && sum(one, opaque(sign * kEpsilon<T> / 4)) == sign;
    good = good && sum(one, opaque(sign * kEpsilon<T> * 3 / 4)) == sign * (1 + kEpsilon<T>);
  }
  return good;
}

// ---- all of them ----

template <bool (*Single)(), bool (*Double)()>
bool both() {
  return Single() && Double();
}

// The first that differs is to name the cause: -ffast-math also contracts and flushes.
constexpr const char* kFast = "built with -ffast-math, or a part of it";

constexpr ArithmeticRule kArithmeticRules[] = {
    {"direction of rounding", "to the nearest", "another",
     "a library, or the environment, has set another direction of rounding (fesetround)",
     both<rounds_to_nearest<float>, rounds_to_nearest<double>>},
    {"order of sums", "as written", "changed", kFast,
     both<sums_are_in_order<float>, sums_are_in_order<double>>},
    {"quotients", "rounded once", "approximate", kFast,
     both<quotients_are_rounded<float>, quotients_are_rounded<double>>},
    {"NaN, infinity, -0", "told apart", "passed over", kFast,
     both<special_values_count<float>, special_values_count<double>>},
    {"products and sums", "rounded one by one", "contracted",
     "built with -ffp-contract=fast, which is some compilers' default, or with -ffast-math; the Makefile's "
     "-ffp-contract=off must come last",
     both<products_are_rounded<float>, products_are_rounded<double>>},
    {"fused products, where asked for", "exact", "not exact",
     "fma() of the mathematical library, or of the processor, rounds twice",
     both<fused_is_exact<float>, fused_is_exact<double>>},
    {"numbers below the normal ones", "kept", "taken for 0",
     "denormal numbers are flushed to zero: by a library that was linked with -ffast-math or preloaded "
     "(LD_PRELOAD), or by a build with -ffast-math",
     both<denormals_stay<float>, denormals_stay<double>>},
};

}  // namespace

std::span<const ArithmeticRule> arithmetic_rules() {
  return kArithmeticRules;
}

std::vector<bool> arithmetic_rules_kept(int threads) {
  unsigned broken = 0;
#pragma omp parallel num_threads(threads) reduction(| : broken)
  for (std::size_t k = 0; k < std::size(kArithmeticRules); ++k)
    if (!kArithmeticRules[k].holds()) broken |= 1u << k;
  std::vector<bool> kept;
  for (std::size_t k = 0; k < std::size(kArithmeticRules); ++k) kept.push_back((broken >> k & 1) == 0);
  return kept;
}

}  // namespace espalier
