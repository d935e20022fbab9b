// Instructions of floats, as the PTX ISA defines them (sections 9.7.3, 9.7.9.22): every result of
// f32 that is no number is 0x7fffffff; .ftz makes zeros, of their sign, of subnormal f32.
#pragma once

#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace ptx {

using Half = _Float16;

template <class T>
[[gnu::always_inline]] inline T from_bits(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
template <class T>
[[gnu::always_inline]] inline std::uint64_t to_bits(T value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}
template <class T>
inline constexpr bool kIsFloat = std::is_same_v<T, float> || std::is_same_v<T, double>;

template <class T>
bool is_nan(T x) {
  return x != x;
}
inline float canonical(float x) {
  return is_nan(x) ? from_bits<float>(0x7fffffff) : x;
}
inline double canonical(double x) {
  return x;
}
inline Half canonical(Half x) {
  return is_nan(x) ? from_bits<Half>(0x7fff) : x;
}
inline float flushed(float x) {
  return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x;
}
template <class T>
T saturated(T x) {
  return is_nan(x) || x <= T(0) ? T(0) : x > T(1) ? T(1) : x;
}

enum Rounding { kNearest = FE_TONEAREST, kZero = FE_TOWARDZERO, kDown = FE_DOWNWARD, kUp = FE_UPWARD };
/// operation(a, b, c), rounded so. What is volatile is read and written between the changes
/// of the mode.
template <Rounding R, class T, class Operation>
T rounded(Operation operation, T a, T b = 0, T c = 0) {
  if constexpr (R == kNearest) return canonical(operation(a, b, c));
  volatile T x = a, y = b, z = c;
  std::fesetround(R);
  volatile T result = operation(T(x), T(y), T(z));
  std::fesetround(kNearest);
  return canonical(T(result));
}
template <Rounding R, class T>
T add(T a, T b) {
  return rounded<R>([](T x, T y, T) { return x + y; }, a, b);
}
template <Rounding R, class T>
T sub(T a, T b) {
  return rounded<R>([](T x, T y, T) { return x - y; }, a, b);
}
template <Rounding R, class T>
T mul(T a, T b) {
  return rounded<R>([](T x, T y, T) { return x * y; }, a, b);
}
template <Rounding R, class T>
T div(T a, T b) {
  return rounded<R>([](T x, T y, T) { return x / y; }, a, b);
}
template <Rounding R, class T>
T fma(T a, T b, T c) {
  return rounded<R>([](T x, T y, T z) { return std::fma(x, y, z); }, a, b, c);
}
template <Rounding R, class T>
T sqrt(T a) {
  return rounded<R>([](T x, T, T) { return std::sqrt(x); }, a);
}
template <Rounding R, class T>
T rcp(T a) {
  return div<R>(T(1), a);
}

// The other operand of one that is no number; -0 is less than +0.
template <class T>
T minimum(T a, T b) requires kIsFloat<T> {
  if (is_nan(a) || is_nan(b)) return canonical(is_nan(a) ? b : a);
  if (a == b) return std::signbit(a) ? a : b;
  return b < a ? b : a;
}
template <class T>
T maximum(T a, T b) requires kIsFloat<T> {
  if (is_nan(a) || is_nan(b)) return canonical(is_nan(a) ? b : a);
  if (a == b) return std::signbit(a) ? b : a;
  return a < b ? b : a;
}
template <class T>
T magnitude(T x) requires kIsFloat<T> {
  return canonical(std::fabs(x));
}
template <class T>
T minus(T x) requires kIsFloat<T> {
  return canonical(-x);
}

// Conversions.
template <Rounding R, class T>
T whole(T x) {
  if constexpr (sizeof x == 2)
    return static_cast<T>(whole<R>(static_cast<float>(x)));
  else
    switch (R) {
      case kNearest:
        return std::nearbyint(x);  // ties to even
      case kZero:
        return std::trunc(x);
      case kDown:
        return std::floor(x);
      case kUp:
        return std::ceil(x);
    }
}
/// Of a whole number. Beyond what I holds it is the nearest that it holds; of what is no number 0,
/// or, from or to 64 bits, the highest bit alone.
template <class I, class T>
I to_integer(T x) {
  if constexpr (sizeof x == 2)
    return to_integer<I>(static_cast<float>(x));
  else {
    if (is_nan(x))
      return sizeof(I) == 8 || sizeof(T) == 8 ? static_cast<I>(std::uint64_t{1} << (8 * sizeof(I) - 1))
                                              : I(0);
    const T end = std::ldexp(T(1), std::numeric_limits<I>::digits);
    if (x >= end) return std::numeric_limits<I>::max();
    if (x < (std::is_signed_v<I> ? -end : T(0))) return std::numeric_limits<I>::min();
    return static_cast<I>(x);
  }
}
template <Rounding R, class To, class From>
To to_float(From x) {
  if constexpr (R == kNearest) return canonical(static_cast<To>(x));
  volatile From source = x;
  std::fesetround(R);
  volatile To result = static_cast<To>(From(source));
  std::fesetround(kNearest);
  return canonical(To(result));
}

// Comparisons: without u they are false, with it true, where an operand is no number.
template <class T>
bool ordered(T a, T b) {
  return a == a && b == b;
}
#define ESPALIER_PTX_COMPARISON(name, operation) \
  template <class T>                             \
  bool is_##name(T a, T b) {                     \
    return ordered(a, b) && a operation b;       \
  }                                              \
  template <class T>                             \
  bool is_##name##u(T a, T b) {                  \
    return !ordered(a, b) || a operation b;      \
  }
ESPALIER_PTX_COMPARISON(eq, ==)
ESPALIER_PTX_COMPARISON(ne, !=)
ESPALIER_PTX_COMPARISON(lt, <)
ESPALIER_PTX_COMPARISON(le, <=)
ESPALIER_PTX_COMPARISON(gt, >)
ESPALIER_PTX_COMPARISON(ge, >=)
// Of unsigned integers, by their other names.
ESPALIER_PTX_COMPARISON(lo, <)
ESPALIER_PTX_COMPARISON(ls, <=)
ESPALIER_PTX_COMPARISON(hi, >)
ESPALIER_PTX_COMPARISON(hs, >=)
#undef ESPALIER_PTX_COMPARISON
template <class T>
bool is_num(T a, T b) {
  return ordered(a, b);
}
template <class T>
bool is_nan(T a, T b) {
  return !ordered(a, b);
}

}  // namespace ptx
