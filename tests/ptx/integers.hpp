// Instructions of integers and bits, as the PTX ISA defines them (sections 9.7.1, 9.7.2, 9.7.8).
#pragma once

#include <cstdint>
#include <type_traits>

namespace ptx {

template <class T>
inline constexpr unsigned kBits = 8 * sizeof(T);
template <class T>
using Unsigned = std::make_unsigned_t<T>;
__extension__ using Wide = __int128;
__extension__ using UnsignedWide = unsigned __int128;

template <class T>
T mul_lo(T a, T b) {
  return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}
template <class T>
T mul_hi(T a, T b) {
  using Product = std::conditional_t<std::is_signed_v<T>, Wide, UnsignedWide>;
  return static_cast<T>(static_cast<Product>(a) * static_cast<Product>(b) >> kBits<T>);
}
/// Of 16 or 32 bits: the result has twice as many.
template <class T>
auto mul_wide(T a, T b) {
  using Narrow = std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>;
  using Product = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
  using Result = std::conditional_t<sizeof(T) == 2, Narrow, Product>;
  return static_cast<Result>(static_cast<Product>(a) * static_cast<Product>(b));
}
template <class T>
T minus(T x) requires std::is_integral_v<T> {
  return static_cast<T>(0 - static_cast<Unsigned<T>>(x));
}
template <class T>
T magnitude(T x) requires std::is_integral_v<T> {
  return x < 0 ? minus(x) : x;
}
// By zero it is unspecified; a GPU gives all ones, and the dividend.
template <class T>
T quotient(T a, T b) {
  if (b == 0) return static_cast<T>(-1);
  if (std::is_signed_v<T> && b == static_cast<T>(-1)) return minus(a);
  return static_cast<T>(a / b);
}
template <class T>
T remainder(T a, T b) {
  if (b == 0) return a;
  if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
  return static_cast<T>(a % b);
}
template <class T>
T minimum(T a, T b) requires std::is_integral_v<T> {
  return b < a ? b : a;
}
template <class T>
T maximum(T a, T b) requires std::is_integral_v<T> {
  return a < b ? b : a;
}

// Shifts by the width and more leave zeros, or the sign.
template <class T>
T left(T x, std::uint32_t by) {
  return by >= kBits<T> ? T(0) : static_cast<T>(static_cast<std::uint64_t>(x) << by);
}
template <class T>
T right(T x, std::uint32_t by) {
  if (by >= kBits<T>) return x < 0 ? static_cast<T>(-1) : T(0);
  return static_cast<T>(x >> by);
}
inline std::uint32_t funnel_left(std::uint32_t low, std::uint32_t high, std::uint32_t by) {
  return by == 32 ? low
                  : static_cast<std::uint32_t>((static_cast<std::uint64_t>(high) << 32 | low) >> (32 - by));
}
inline std::uint32_t funnel_right(std::uint32_t low, std::uint32_t high, std::uint32_t by) {
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(high) << 32 | low) >> by);
}
inline std::uint32_t funnel_left_wrap(std::uint32_t low, std::uint32_t high, std::uint32_t by) {
  return funnel_left(low, high, by & 31u);
}
inline std::uint32_t funnel_left_clamp(std::uint32_t low, std::uint32_t high, std::uint32_t by) {
  return funnel_left(low, high, by < 32 ? by : 32);
}
inline std::uint32_t funnel_right_wrap(std::uint32_t low, std::uint32_t high, std::uint32_t by) {
  return funnel_right(low, high, by & 31u);
}
inline std::uint32_t funnel_right_clamp(std::uint32_t low, std::uint32_t high, std::uint32_t by) {
  return funnel_right(low, high, by < 32 ? by : 32);
}

template <class T>
std::uint32_t ones(T x) {
  return static_cast<std::uint32_t>(__builtin_popcountll(x));
}
template <class T>
std::uint32_t leading_zeros(T x) {
  return x == 0 ? kBits<T> : static_cast<std::uint32_t>(__builtin_clzll(x)) - (64 - kBits<T>);
}
template <class T>
T reversed(T x) {
  T result = 0;
  for (unsigned k = 0; k < kBits<T>; ++k) result |= static_cast<T>((x >> k & 1) << (kBits<T> - 1 - k));
  return result;
}
/// Bits [begin, begin + length) of x, the rest of which is the sign: the last bit that was asked
/// for, or the highest where that lies beyond it.
template <class T>
T extracted(T x, std::uint32_t begin, std::uint32_t length) {
  begin &= 255u;
  length &= 255u;
  const auto bits = static_cast<Unsigned<T>>(x);
  const unsigned last = begin + length - 1 < kBits<T> - 1 ? begin + length - 1 : kBits<T> - 1;
  const Unsigned<T> sign = std::is_signed_v<T> && length > 0 ? bits >> last & 1 : 0;
  Unsigned<T> result = 0;
  for (unsigned k = 0; k < kBits<T>; ++k) {
    const Unsigned<T> bit = k < length && begin + k < kBits<T> ? bits >> (begin + k) & 1 : sign;
    result |= bit << k;
  }
  return static_cast<T>(result);
}
/// `into`, with the lowest `length` bits of x from `begin` on.
template <class T>
T inserted(T x, T into, std::uint32_t begin, std::uint32_t length) {
  begin &= 255u;
  length &= 255u;
  for (unsigned k = 0; k < length && begin + k < kBits<T>; ++k) {
    const T at = T(1) << (begin + k);
    into = (into & ~at) | ((x >> k & 1) << (begin + k));
  }
  return into;
}
/// Ones in [begin, begin + length).
inline std::uint32_t mask_clamped(std::uint32_t begin, std::uint32_t length) {
  const std::uint64_t all = length >= 32 ? 0xffffffffull : (1ull << length) - 1;
  return begin >= 32 ? 0 : static_cast<std::uint32_t>(all << begin);
}
/// Each nibble of `choice` names a byte of b:a, or with its highest bit the sign of that byte.
inline std::uint32_t permuted(std::uint32_t a, std::uint32_t b, std::uint32_t choice) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(b) << 32 | a;
  std::uint32_t result = 0;
  for (unsigned k = 0; k < 4; ++k) {
    const unsigned nibble = choice >> 4 * k & 15;
    unsigned byte = bytes >> 8 * (nibble & 7) & 255;
    if ((nibble & 8) != 0) byte = (byte & 128) != 0 ? 255 : 0;
    result |= byte << 8 * k;
  }
  return result;
}
/// cvt.sat between integers.
template <class To, class From>
To clamped(From x) {
  const Wide low = std::is_signed_v<To> ? -(Wide(1) << (kBits<To> - 1)) : 0;
  const Wide high = (Wide(1) << (kBits<To> - std::is_signed_v<To>)) - 1;
  return static_cast<To>(x < low ? low : x > high ? high : Wide(x));
}

}  // namespace ptx
