// A cache of feature rows on a GPU: rows in its memory, a thread for each word.
#include "espalier/base/launch.hpp"
#include "row_cache.inl.hpp"

namespace espalier {

namespace {

// work(k, w, words, T()) for each word w of row k: of 4 bytes, or of 2 where rows end between.
template <class Work>
void for_each_word(const Cuda& cuda, const char* name, std::int64_t count, std::int64_t row_bytes,
                   Work work) {
  if (row_bytes % 4 == 0)
    for_each_in_rows(cuda, name, count, row_bytes / 4,
                     [=] __device__(std::int64_t k, std::int64_t w) { work(k, w, std::uint32_t{}); });
  else
    for_each_in_rows(cuda, name, count, row_bytes / 2,
                     [=] __device__(std::int64_t k, std::int64_t w) { work(k, w, std::uint16_t{}); });
}

struct ReadWord {
  CachedRows rows;
  const std::int32_t* slots;
  std::byte* to;
  template <class Word>
  __device__ void operator()(std::int64_t k, std::int64_t w, Word) const {
    reinterpret_cast<Word*>(to + k * rows.row_bytes)[w] =
        reinterpret_cast<const Word*>(rows.row(slots[k]))[w];
  }
};

struct KeepWord {
  CachedRows rows;
  const std::byte* from;
  const std::int64_t* which;
  const std::int32_t* slots;
  template <class Word>
  __device__ void operator()(std::int64_t k, std::int64_t w, Word) const {
    reinterpret_cast<Word*>(rows.row(slots[k]))[w] =
        reinterpret_cast<const Word*>(from + which[k] * rows.row_bytes)[w];
  }
};

struct MoveWord {
  CachedRows rows;
  const std::int32_t *from, *to;
  template <class Word>
  __device__ void operator()(std::int64_t k, std::int64_t w, Word) const {
    reinterpret_cast<Word*>(rows.row(to[k]))[w] = reinterpret_cast<const Word*>(rows.row(from[k]))[w];
  }
};

}  // namespace

void read_cached(const Cuda& cuda, const CachedRows& rows, const DeviceArray<std::int32_t>& slots,
                 std::byte* to) {
  for_each_word(cuda, "read_cached", std::ssize(slots), rows.row_bytes, ReadWord{rows, slots.data(), to});
}

void keep_arrived(const Cuda& cuda, const CachedRows& rows, const std::byte* from,
                  const DeviceArray<std::int64_t>& which, const DeviceArray<std::int32_t>& slots) {
  for_each_word(cuda, "keep_arrived", std::ssize(slots), rows.row_bytes,
                KeepWord{rows, from, which.data(), slots.data()});
}

void move_cached(const Cuda& cuda, const CachedRows& rows, const DeviceArray<std::int32_t>& from,
                 const DeviceArray<std::int32_t>& to) {
  for_each_word(cuda, "move_cached", std::ssize(from), rows.row_bytes,
                MoveWord{rows, from.data(), to.data()});
}

template <class Id>
void put_in_order(const Cuda& cuda, const DeviceArray<std::int64_t>& places, Id* ids, std::int64_t* order) {
  const auto count = std::ssize(places);
  DeviceArray<Id> old_ids(count);
  DeviceArray<std::int64_t> old_order(count);
  copy_bytes_on_device(cuda, ids, old_ids.data(), count * sizeof(Id));
  copy_bytes_on_device(cuda, order, old_order.data(), count * sizeof(std::int64_t));
  const auto* const place = places.data();
  const auto* const id = old_ids.data();
  const auto* const number = old_order.data();
  for_each(cuda, "put_in_order", count, [=] __device__(std::int64_t k) {
    ids[k] = id[place[k]];
    order[k] = number[place[k]];
  });
}

template class RowCacheOn<Cuda>;
template void RowCacheOn<Cuda>::begin(const Cuda&, OwnerGroups<std::int32_t, Cuda>&, std::int64_t,
                                      std::vector<std::int64_t>&, DeviceArray<std::byte>&);
template void RowCacheOn<Cuda>::begin(const Cuda&, OwnerGroups<std::int64_t, Cuda>&, std::int64_t,
                                      std::vector<std::int64_t>&, DeviceArray<std::byte>&);

}  // namespace espalier
