// A map from vertex ids to positions 0, 1, 2, ... in order of first insertion: open addressing with
// linear probing, sized once for the number of ids it may see. Deterministic, one allocation.
#pragma once

#include <bit>
#include <cstdint>

#include "espalier/base/buffer.hpp"
#include "espalier/base/footprint.hpp"

namespace espalier {

class IdMap {
 public:
  /// Room for `expected` distinct ids (>= 0).
  explicit IdMap(std::int64_t expected)
      : slots_(std::bit_ceil(static_cast<std::uint64_t>(2 * expected + 2)), Slot{-1, 0}),
        mask_(slots_.size() - 1) {}

  /// The position of `id`, which gets the next free one when it is new.
  std::int64_t insert(std::int64_t id) {
    Slot& slot = find_slot(id);
    if (slot.id < 0) slot = {id, size_++};
    return slot.position;
  }
  /// The position of `id`, or -1.
  std::int64_t find(std::int64_t id) const {
    const Slot& slot = const_cast<IdMap*>(this)->find_slot(id);
    return slot.id < 0 ? -1 : slot.position;
  }
  /// Gives a known `id` another position.
  void assign(std::int64_t id, std::int64_t position) { find_slot(id).position = position; }
  std::int64_t size() const { return size_; }

  static Footprint footprint(double expected) {
    return Footprint().add(sizeof(Slot) *
                           static_cast<double>(std::bit_ceil(static_cast<std::uint64_t>(2 * expected + 2))));
  }

 private:
  struct Slot {
    std::int64_t id;
    std::int64_t position;
  };
  Slot& find_slot(std::int64_t id) {
    // Fibonacci hashing: the high bits of id * 2^64 / golden ratio.
    std::uint64_t at = (static_cast<std::uint64_t>(id) * 0x9e3779b97f4a7c15u) >> 20;
    while (slots_[at & mask_].id >= 0 && slots_[at & mask_].id != id) ++at;
    return slots_[at & mask_];
  }

  Buffer<Slot> slots_;
  std::uint64_t mask_;
  std::int64_t size_ = 0;
};

}  // namespace espalier
