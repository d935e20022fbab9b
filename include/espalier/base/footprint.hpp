// Memory of arrays that live at once, as `plan` adds it up before a job runs. Functions that end in
// _footprint say, in the room of the code that holds the arrays, what it holds on a rank; sizes are
// expectations, so they are doubles.
#pragma once

#include "espalier/base/buffer.hpp"

namespace espalier {

/// Large arrays have pages of their own, smaller ones are of the C library's heap. Both keep
/// what was freed for arrays of their kind (base/buffer.hpp): what is mapped at the most that
/// it ever was.
struct Footprint {
  double heap = 0, mapped = 0;  ///< bytes

  /// `count` arrays of so many bytes each.
  Footprint& add(double bytes, double count = 1) {
    (bytes >= static_cast<double>(kMappedBufferBytes) ? mapped : heap) += count * bytes;
    return *this;
  }
  Footprint& operator+=(const Footprint& other) {
    heap += other.heap;
    mapped += other.mapped;
    return *this;
  }
  double bytes() const { return heap + mapped; }
};

inline Footprint operator+(Footprint a, const Footprint& b) {
  return a += b;
}
inline Footprint operator*(double times, const Footprint& a) {
  return {times * a.heap, times * a.mapped};
}
inline const Footprint& larger(const Footprint& a, const Footprint& b) {
  return a.bytes() < b.bytes() ? b : a;
}

}  // namespace espalier
