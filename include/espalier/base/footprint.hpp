// Memory of arrays that live at once, as `plan` adds it up before a job runs. Functions that end in
// _footprint say, in the room of the code that holds the arrays, what it holds on a rank; sizes are
// expectations, so they are doubles.
#pragma once

namespace espalier {

/// The C library takes large arrays from the system and gives them back when they are freed;
/// smaller ones come from its heap, which keep_freed_memory() (base/buffer.hpp) lets it keep.
struct Footprint {
  double heap = 0, mapped = 0;  ///< bytes

  /// `count` arrays of so many bytes each.
  Footprint& add(double bytes, double count = 1) {
    constexpr double kMapped = 30 << 20;  // 32 MiB with room to align it to a huge page
    (bytes >= kMapped ? mapped : heap) += count * bytes;
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
