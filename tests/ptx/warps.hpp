// Instructions by which the threads of a warp or block speak to each other (PTX ISA, section
// 9.7.13, 9.7.9.6): over the emulation's barriers.
#pragma once

#include <bit>

#include "cuda_runtime.h"  // the emulation's
#include "floats.hpp"
#include "windows.hpp"

namespace ptx {

inline std::uint32_t lane() {
  return static_cast<std::uint32_t>(espalier_emulation::lane());
}
inline std::uint32_t thread_of_block() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
inline int threads_of_block() {
  return static_cast<int>(blockDim.x * blockDim.y * blockDim.z);
}
inline std::uint32_t warp() {
  return thread_of_block() / 32;
}
/// How many of the block's threads said yes.
inline int wait_for_threads(bool yes) {
  return espalier_emulation::wait_for_block(yes ? 1 : 0);
}
inline void wait_for_lanes(std::uint32_t mask) {
  espalier_emulation::exchange_in_warp(mask, 0, true);
}

// Shuffles. The lowest five bits of `bounds` clamp the lane that is read, the bits from the
// eighth on say which bits of a lane number its segment has; `valid`: the lane that was asked for
// lies within.
inline std::uint32_t read_lane(std::uint32_t mask, std::uint32_t value, std::int32_t from, bool valid) {
  const auto* const values = espalier_emulation::exchange_in_warp(mask, value);
  const auto source = valid ? static_cast<std::uint32_t>(from) : lane();
  if ((mask >> source & 1u) == 0) stop("a shuffle reads a lane that takes no part in it");
  return static_cast<std::uint32_t>(values[source]);
}
struct Segment {
  // Bound: the last lane, or for shfl.up the first, that may be read.
  std::int32_t lane, first, bound, by;
  Segment(std::uint32_t by_, std::uint32_t bounds)
      : lane(static_cast<std::int32_t>(ptx::lane())), by(static_cast<std::int32_t>(by_ & 31u)) {
    const auto segment = static_cast<std::int32_t>(bounds >> 8 & 31u);
    first = lane & segment;
    bound = first | (static_cast<std::int32_t>(bounds & 31u) & ~segment);
    within = by & ~segment;
  }
  std::int32_t within;
};
inline std::uint32_t shuffled_up(std::uint32_t value, std::uint32_t by, std::uint32_t bounds,
                                 std::uint32_t mask, bool& valid) {
  const Segment s(by, bounds);
  valid = s.lane - s.by >= s.bound;
  return read_lane(mask, value, s.lane - s.by, valid);
}
inline std::uint32_t shuffled_down(std::uint32_t value, std::uint32_t by, std::uint32_t bounds,
                                   std::uint32_t mask, bool& valid) {
  const Segment s(by, bounds);
  valid = s.lane + s.by <= s.bound;
  return read_lane(mask, value, s.lane + s.by, valid);
}
inline std::uint32_t shuffled_bfly(std::uint32_t value, std::uint32_t by, std::uint32_t bounds,
                                   std::uint32_t mask, bool& valid) {
  const Segment s(by, bounds);
  valid = (s.lane ^ s.by) <= s.bound;
  return read_lane(mask, value, s.lane ^ s.by, valid);
}
inline std::uint32_t shuffled_idx(std::uint32_t value, std::uint32_t by, std::uint32_t bounds,
                                  std::uint32_t mask, bool& valid) {
  const Segment s(by, bounds);
  valid = (s.first | s.within) <= s.bound;
  return read_lane(mask, value, s.first | s.within, valid);
}

// Over the lanes of a mask.
inline std::uint32_t vote_ballot(std::uint32_t mask, bool yes) {
  const auto* const values = espalier_emulation::exchange_in_warp(mask, yes);
  std::uint32_t ballot = 0;
  for (unsigned k = 0; k < 32; ++k)
    if ((mask >> k & 1u) != 0 && values[k] != 0) ballot |= 1u << k;
  return ballot;
}
inline bool vote_any(std::uint32_t mask, bool yes) {
  return vote_ballot(mask, yes) != 0;
}
inline bool vote_all(std::uint32_t mask, bool yes) {
  return vote_ballot(mask, yes) == mask;
}
inline bool vote_uni(std::uint32_t mask, bool yes) {
  const auto ballot = vote_ballot(mask, yes);
  return ballot == 0 || ballot == mask;
}
/// The lanes that have the same value.
template <class T>
std::uint32_t match_any(std::uint32_t mask, T value, bool&) {
  const auto* const values = espalier_emulation::exchange_in_warp(mask, value);
  std::uint32_t lanes = 0;
  for (unsigned k = 0; k < 32; ++k)
    if ((mask >> k & 1u) != 0 && values[k] == value) lanes |= 1u << k;
  return lanes;
}
/// The mask where all have the same value, else nothing.
template <class T>
std::uint32_t match_all(std::uint32_t mask, T value, bool& equal) {
  equal = match_any(mask, value, equal) == mask;
  return equal ? mask : 0;
}
template <class T, class Operation>
T reduced(std::uint32_t mask, T value, Operation operation) {
  const auto* const values = espalier_emulation::exchange_in_warp(mask, to_bits(value));
  auto k = static_cast<unsigned>(std::countr_zero(mask));
  T result = from_bits<T>(values[k]);
  for (++k; k < 32; ++k)
    if ((mask >> k & 1u) != 0) result = static_cast<T>(operation(result, from_bits<T>(values[k])));
  return result;
}
#define ESPALIER_PTX_REDUCTION(name, expression)                      \
  template <class T>                                                  \
  T reduced_##name(std::uint32_t mask, T value) {                     \
    return reduced(mask, value, [](T a, T b) { return expression; }); \
  }
ESPALIER_PTX_REDUCTION(add, static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b))
ESPALIER_PTX_REDUCTION(min, b < a ? b : a)
ESPALIER_PTX_REDUCTION(max, a < b ? b : a)
ESPALIER_PTX_REDUCTION(and, a& b)
ESPALIER_PTX_REDUCTION(or, a | b)
ESPALIER_PTX_REDUCTION(xor, a ^ b)
#undef ESPALIER_PTX_REDUCTION

}  // namespace ptx
