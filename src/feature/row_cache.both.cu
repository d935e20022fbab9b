#include "espalier/feature/row_cache.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "espalier/base/arrays.hpp"
#include "espalier/base/kernels.hpp"

namespace espalier {

// ---- The kernels of a cache ---------------------------------------------------------------------

namespace {

// Row k of `count` goes from from(k) to to(k). On a GPU a thread has a word, of 4 bytes, or of 2
// where rows end between.
template <class From, class To>
void copy_cached(const Cpu& cpu, const char* /*name*/, std::int64_t count, std::int64_t row_bytes,
                 const From& from, const To& to) {
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
  for (std::int64_t k = 0; k < count; ++k) std::memcpy(to(k), from(k), row_bytes);
}
template <class Word, class From, class To>
void copy_words(const Cuda& cuda, const char* name, std::int64_t count, std::int64_t row_bytes,
                const From& from, const To& to) {
  for_each_in_rows(cuda, name, count, row_bytes / static_cast<std::int64_t>(sizeof(Word)),
                   [=] ESPALIER_DEVICE(std::int64_t k, std::int64_t w) {
                     reinterpret_cast<Word*>(to(k))[w] = reinterpret_cast<const Word*>(from(k))[w];
                   });
}
template <class From, class To>
void copy_cached(const Cuda& cuda, const char* name, std::int64_t count, std::int64_t row_bytes,
                 const From& from, const To& to) {
  if (row_bytes % 4 == 0)
    copy_words<std::uint32_t>(cuda, name, count, row_bytes, from, to);
  else
    copy_words<std::uint16_t>(cuda, name, count, row_bytes, from, to);
}

// to[k] = the row in slots[k].
void read_cached(const Space& space, const CachedRows& rows, const Array<Space, std::int32_t>& slots,
                 std::byte* to) {
  const auto* const slot = slots.data();
  copy_cached(
      space, "read_cached", std::ssize(slots), rows.row_bytes,
      [=] ESPALIER_DEVICE(std::int64_t k) { return rows.row(slot[k]); },
      [=] ESPALIER_DEVICE(std::int64_t k) { return to + k * rows.row_bytes; });
}

// The row in slots[k] = from[which[k]]; slots are distinct.
void keep_arrived(const Space& space, const CachedRows& rows, const std::byte* from,
                  const Array<Space, std::int64_t>& which, const Array<Space, std::int32_t>& slots) {
  const auto* const number = which.data();
  const auto* const slot = slots.data();
  copy_cached(
      space, "keep_arrived", std::ssize(slots), rows.row_bytes,
      [=] ESPALIER_DEVICE(std::int64_t k) { return from + number[k] * rows.row_bytes; },
      [=] ESPALIER_DEVICE(std::int64_t k) { return rows.row(slot[k]); });
}

// The row in to[k] = that in from[k]; none is in both.
void move_cached(const Space& space, const CachedRows& rows, const Array<Space, std::int32_t>& from,
                 const Array<Space, std::int32_t>& to) {
  const auto *const source = from.data(), *const target = to.data();
  copy_cached(
      space, "move_cached", std::ssize(from), rows.row_bytes,
      [=] ESPALIER_DEVICE(std::int64_t k) { return rows.row(source[k]); },
      [=] ESPALIER_DEVICE(std::int64_t k) { return rows.row(target[k]); });
}

// ids[k], order[k] = what they were at places[k].
template <class Id>
void put_in_order(const Space& space, const Array<Space, std::int64_t>& places, Id* ids,
                  std::int64_t* order) {
  const auto count = std::ssize(places);
  Array<Space, Id> old_ids(count);
  Array<Space, std::int64_t> old_order(count);
  copy_within(space, ids, count, old_ids.data());
  copy_within(space, order, count, old_order.data());
  const auto* const place = places.data();
  const auto* const id = old_ids.data();
  const auto* const number = old_order.data();
  for_each(space, "put_in_order", count, [=] ESPALIER_DEVICE(std::int64_t k) {
    ids[k] = id[place[k]];
    order[k] = number[place[k]];
  });
}

}  // namespace

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

template <class Space>
void RowCacheOn<Space>::begin_read(const Cpu& cpu, std::span<const std::int64_t> ids,
                                   std::vector<std::int64_t>& missed,
                                   std::byte* to) requires std::is_same_v<Space, Cpu> {
  std::vector<std::int32_t> slots(ids.size());
  policy_.begin(ids, slots);
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
  for (std::int64_t k = 0; k < std::ssize(slots); ++k)
    if (slots[k] >= 0) std::memcpy(to + k * row_bytes_, rows().row(slots[k]), row_bytes_);
  missed.clear();
  for (std::int64_t k = 0; k < std::ssize(slots); ++k)
    if (slots[k] < 0) missed.push_back(k);
}

template <class Space>
void RowCacheOn<Space>::end_read(const Cpu& cpu, std::span<const std::int64_t> ids,
                                 std::span<const std::int64_t> missed,
                                 const std::byte* from) requires std::is_same_v<Space, Cpu> {
  std::vector<std::int64_t> read;
  for (const auto place : missed) read.push_back(ids[place]);
  take_up(cpu, policy_.end(read), from, missed);
}

template class RowCacheOn<Space>;
template void RowCacheOn<Space>::begin(const Space&, OwnerGroups<std::int32_t, Space>&, std::int64_t,
                                       std::vector<std::int64_t>&, Array<Space, std::byte>&);
template void RowCacheOn<Space>::begin(const Space&, OwnerGroups<std::int64_t, Space>&, std::int64_t,
                                       std::vector<std::int64_t>&, Array<Space, std::byte>&);

}  // namespace espalier
