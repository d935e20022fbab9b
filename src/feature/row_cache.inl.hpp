// What RowCacheOn does, for every space: row_cache.cpp and row_cache.cu instantiate it.
#pragma once

#include <algorithm>
#include <utility>

#include "espalier/base/arrays.hpp"
#include "espalier/feature/row_cache.hpp"

namespace espalier {

// ---- The kernels of a cache ---------------------------------------------------------------------

// to[k] = the row in slots[k].
void read_cached(const Cpu& cpu, const CachedRows& rows, const Buffer<std::int32_t>& slots, std::byte* to);
void read_cached(const Cuda& cuda, const CachedRows& rows, const DeviceArray<std::int32_t>& slots,
                 std::byte* to);

// The row in slots[k] = from[which[k]]; slots are distinct.
void keep_arrived(const Cpu& cpu, const CachedRows& rows, const std::byte* from,
                  const Buffer<std::int64_t>& which, const Buffer<std::int32_t>& slots);
void keep_arrived(const Cuda& cuda, const CachedRows& rows, const std::byte* from,
                  const DeviceArray<std::int64_t>& which, const DeviceArray<std::int32_t>& slots);

// The row in to[k] = that in from[k]; none is in both.
void move_cached(const Cpu& cpu, const CachedRows& rows, const Buffer<std::int32_t>& from,
                 const Buffer<std::int32_t>& to);
void move_cached(const Cuda& cuda, const CachedRows& rows, const DeviceArray<std::int32_t>& from,
                 const DeviceArray<std::int32_t>& to);

// ids[k], order[k] = what they were at places[k].
template <class Id>
void put_in_order(const Cpu& cpu, const Buffer<std::int64_t>& places, Id* ids, std::int64_t* order);
template <class Id>
void put_in_order(const Cuda& cuda, const DeviceArray<std::int64_t>& places, Id* ids, std::int64_t* order);

// -------------------------------------------------------------------------------------------------

template <class Space>
std::int64_t RowCacheOn<Space>::bytes() const {
  return std::ssize(pieces_) * piece_rows_ * row_bytes_ + policy_.bytes();
}

template <class Space>
void RowCacheOn<Space>::set_memory(const Space& space, std::int64_t bytes) {
  const auto slots = slots_of(bytes, row_bytes_, piece_rows_);
  if (slots == policy_.slots()) return;
  const auto moves = policy_.resize(slots);
  if (!moves.empty()) {
    std::vector<std::int32_t> from, to;
    for (const auto& move : moves) {
      from.push_back(move.from);
      to.push_back(move.to);
    }
    move_cached(space, rows(), copy_to<std::int32_t, Space>(space, from),
                copy_to<std::int32_t, Space>(space, to));
  }
  if (std::ssize(pieces_) * piece_rows_ > slots) pieces_.resize(slots / piece_rows_);
}

// Slots are used one after another, so pieces come as they are needed.
template <class Space>
void RowCacheOn<Space>::have_pieces(const Space& space, std::int64_t slots) {
  const auto needed = (slots + piece_rows_ - 1) / piece_rows_;
  if (needed <= std::ssize(pieces_)) return;
  while (std::ssize(pieces_) < needed) pieces_.emplace_back(piece_rows_ * row_bytes_);
  std::vector<std::byte*> pointers;
  for (auto& piece : pieces_) pointers.push_back(piece.data());
  pieces_on_space_ = copy_to<std::byte*, Space>(space, pointers);
}

template <class Space>
template <class Id>
void RowCacheOn<Space>::begin(const Space& space, OwnerGroups<Id, Space>& wanted, std::int64_t others,
                              std::vector<std::int64_t>& missed, Array<Space, std::byte>& arrived) {
  Buffer<Id> asked(others);
  copy_from(space, wanted.ids.data(), others, asked.data());
  const std::vector<std::int64_t> ids(asked.begin(), asked.end());
  std::vector<std::int32_t> slot_of(others), slots;
  policy_.begin(ids, slot_of);
  missed.clear();
  std::vector<std::int64_t> places, held;
  std::int64_t at = 0;
  for (auto& count : wanted.counts) {
    const auto end = at + count;
    for (; at < end; ++at) {
      if (slot_of[at] < 0) {
        missed.push_back(ids[at]);
        places.push_back(at);
        continue;
      }
      held.push_back(at);
      slots.push_back(slot_of[at]);
      --count;
    }
  }
  arrived.resize(others * row_bytes_);
  if (held.empty()) return;
  const auto misses = std::ssize(missed);
  places.insert(places.end(), held.begin(), held.end());
  put_in_order(space, copy_to<std::int64_t, Space>(space, places), wanted.ids.data(), wanted.order.data());
  read_cached(space, rows(), copy_to<std::int32_t, Space>(space, slots),
              arrived.data() + misses * row_bytes_);
}

template <class Space>
void RowCacheOn<Space>::end(const Space& space, std::span<const std::int64_t> missed,
                            const Array<Space, std::byte>& arrived) {
  take_up(space, policy_.end(missed), arrived.data());
}

template <class Space>
void RowCacheOn<Space>::take_up(const Space& space, std::span<const CachePolicy::Admission> admitted,
                                const std::byte* from, std::span<const std::int64_t> places) {
  if (admitted.empty()) return;
  std::vector<std::int64_t> which;
  std::vector<std::int32_t> slots;
  for (const auto& [row, slot] : admitted) {
    which.push_back(places.empty() ? row : places[static_cast<std::size_t>(row)]);
    slots.push_back(slot);
  }
  have_pieces(space, *std::ranges::max_element(slots) + 1);
  keep_arrived(space, rows(), from, copy_to<std::int64_t, Space>(space, which),
               copy_to<std::int32_t, Space>(space, slots));
}

}  // namespace espalier
