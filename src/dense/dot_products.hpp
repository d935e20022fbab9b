// Dot products, as sums over a constant number of lanes: a machine with narrow registers takes
// several for what another has one for, and their sum has one order and the same roundings on all.
//
// Element j is added to lane j modulo the number of lanes by a fused multiply-add.
#pragma once

#include <cstdint>
#include <utility>

#include "simd.hpp"

namespace espalier {

/// Lanes of a sum: as many as the widest register has.
template <class T>
inline constexpr int kSumLanes = 64 / static_cast<int>(sizeof(T));

template <class T>
class LaneSums {
 public:
  static LaneSums at(const T* lanes) {
    LaneSums sums;
    for (int p = 0; p < kParts; ++p) sums.parts_[p] = vector_at(lanes + p * kLanes<T>);
    return sums;
  }
  void put(T* lanes) const {
    for (int p = 0; p < kParts; ++p) put_vector<T>(parts_[p], lanes + p * kLanes<T>);
  }
  /// Adds the products of kSumLanes elements of x and y.
  void add(const T* x, const T* y) {
#pragma GCC unroll 4
    for (int p = 0; p < kParts; ++p)
      parts_[p] = fused_multiply_add(vector_at(x + p * kLanes<T>), vector_at(y + p * kLanes<T>), parts_[p]);
  }
  /// Adds those of the last `count` elements, fewer than kSumLanes, that fill vectors;
  /// returns how many.
  std::int64_t add_vectors(const T* x, const T* y, std::int64_t count) {
#pragma GCC unroll 4
    for (int p = 0; p < kParts; ++p)
      if ((p + 1) * kLanes<T> <= count)
        parts_[p] = fused_multiply_add(vector_at(x + p * kLanes<T>), vector_at(y + p * kLanes<T>), parts_[p]);
    return count / kLanes<T> * kLanes<T>;
  }
  LaneSums operator+(const LaneSums& other) const {
    LaneSums sums;
    for (int p = 0; p < kParts; ++p) sums.parts_[p] = parts_[p] + other.parts_[p];
    return sums;
  }
  /// Over the lanes: halves of them on halves.
  T sum() const {
    Vector<T> together[kParts];
    for (int p = 0; p < kParts; ++p) together[p] = parts_[p];
#pragma GCC unroll 2
    for (int half = kParts / 2; half > 0; half /= 2)
      for (int p = 0; p < half; ++p) together[p] += together[p + half];
    return sum_in_order<kLanes<T> / 2>(together[0]);
  }

 private:
  template <int kHalf>
  static T sum_in_order(const Vector<T>& lanes) {
    if constexpr (kHalf == 0)
      return lanes[0];
    else
      return sum_in_order<kHalf / 2>(with_others<kHalf>(lanes, std::make_integer_sequence<int, kLanes<T>>{}));
  }
  template <int kHalf, int... Lane>
  static Vector<T> with_others(const Vector<T>& lanes, std::integer_sequence<int, Lane...>) {
    return lanes + __builtin_shufflevector(lanes, lanes, (Lane + kHalf) % kLanes<T>...);
  }

  static constexpr int kParts = kSumLanes<T> / kLanes<T>;
  static_assert(kParts * kLanes<T> == kSumLanes<T>);
  Vector<T> parts_[kParts] = {};
};

/// The sum over the lanes: halves of them on halves.
template <class T>
T sum_of_lanes(const T* lanes) {
  return LaneSums<T>::at(lanes).sum();
}

/// The sums with the products of elements [begin, end), fewer than kSumLanes. Not inlined: what
/// fills vectors stays in registers.
template <class T>
[[gnu::noinline]] LaneSums<T> with_rest(const LaneSums<T>& sums, const T* x, const T* y, std::int64_t begin,
                                        std::int64_t end) {
  T lanes[kSumLanes<T>];
  sums.put(lanes);
  for (auto k = begin; k < end; ++k) lanes[k] = fused_multiply_add(x[k], y[k], lanes[k]);
  return LaneSums<T>::at(lanes);
}

/// The product of two vectors: of long ones first four sums of lanes, which are added.
template <class T>
T dot(const T* a, const T* b, std::int64_t width) {
  constexpr int kSums = 4, kStep = kSumLanes<T>;
  LaneSums<T> sum;
  std::int64_t j = 0;
  if (width >= kSums * kStep) {
    LaneSums<T> sums[kSums];
    for (; j + kSums * kStep <= width; j += kSums * kStep)
#pragma GCC unroll 4
      for (int k = 0; k < kSums; ++k) sums[k].add(a + j + k * kStep, b + j + k * kStep);
    sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
  for (; j + kStep <= width; j += kStep) sum.add(a + j, b + j);
  const auto rest = width - j, in_vectors = sum.add_vectors(a + j, b + j, rest);
  return in_vectors == rest ? sum.sum() : with_rest(sum, a + j, b + j, in_vectors, rest).sum();
}

}  // namespace espalier
