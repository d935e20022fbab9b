// Dot products, as sums over a constant number of lanes: a machine with narrow registers takes
// several for what another has one for, and their sum has one order and the same roundings on all.
//
// Element j is added to lane j modulo the number of lanes by a fused multiply-add.
#pragma once

#include <cstdint>

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
  LaneSums operator+(const LaneSums& other) const {
    LaneSums sums;
    for (int p = 0; p < kParts; ++p) sums.parts_[p] = parts_[p] + other.parts_[p];
    return sums;
  }

 private:
  static constexpr int kParts = kSumLanes<T> / kLanes<T>;
  static_assert(kParts * kLanes<T> == kSumLanes<T>);
  Vector<T> parts_[kParts] = {};
};

/// The sum over the lanes: halves of them on halves. `lanes` is overwritten.
template <class T>
T sum_of_lanes(T* lanes) {
  for (int half = kSumLanes<T> / 2; half > 0; half /= 2)
    for (int k = 0; k < half; ++k) lanes[k] += lanes[k + half];
  return lanes[0];
}

/// lanes += products of the last elements, fewer than there are lanes.
template <class T>
void add_rest(const T* x, const T* y, std::int64_t count, T* lanes) {
  for (std::int64_t k = 0; k < count; ++k) lanes[k] = fused_multiply_add(x[k], y[k], lanes[k]);
}

/// The product of two vectors: four sums of lanes, then those in order.
template <class T>
T dot(const T* a, const T* b, std::int64_t width) {
  constexpr int kSums = 4, kStep = kSumLanes<T>;
  LaneSums<T> sums[kSums];
  std::int64_t j = 0;
  for (; j + kSums * kStep <= width; j += kSums * kStep)
#pragma GCC unroll 4
    for (int k = 0; k < kSums; ++k) sums[k].add(a + j + k * kStep, b + j + k * kStep);
  for (; j + kStep <= width; j += kStep) sums[0].add(a + j, b + j);
  T lanes[kStep];
  ((sums[0] + sums[1]) + (sums[2] + sums[3])).put(lanes);
  add_rest(a + j, b + j, width - j, lanes);
  return sum_of_lanes(lanes);
}

}  // namespace espalier
