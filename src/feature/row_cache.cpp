// A cache of feature rows on the CPU.
#include "row_cache.inl.hpp"

#include <cstring>

namespace espalier {

// Whole pieces of all rows.
std::vector<std::int64_t> cache_shares(std::span<const CacheSize> caches, std::int64_t bytes) {
  std::vector<double> most;
  double all = 0;
  for (const auto& cache : caches) {
    const auto row = static_cast<double>(cache.row_bytes + RowCache::kFoundBy);
    most.push_back(row * static_cast<double>(cache.rows + RowCache::kPieceRows));
    all += most.back();
  }
  const auto used = std::min(static_cast<double>(std::max<std::int64_t>(0, bytes)), all);
  std::vector<std::int64_t> shares;
  for (const auto one : most) shares.push_back(static_cast<std::int64_t>(used * (one / all)));
  return shares;
}

void read_cached(const Cpu& cpu, const CachedRows& rows, const Buffer<std::int32_t>& slots, std::byte* to) {
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
  for (std::int64_t k = 0; k < std::ssize(slots); ++k)
    std::memcpy(to + k * rows.row_bytes, rows.row(slots[k]), rows.row_bytes);
}

void keep_arrived(const Cpu& cpu, const CachedRows& rows, const std::byte* from,
                  const Buffer<std::int64_t>& which, const Buffer<std::int32_t>& slots) {
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
  for (std::int64_t k = 0; k < std::ssize(slots); ++k)
    std::memcpy(rows.row(slots[k]), from + which[k] * rows.row_bytes, rows.row_bytes);
}

void move_cached(const Cpu& cpu, const CachedRows& rows, const Buffer<std::int32_t>& from,
                 const Buffer<std::int32_t>& to) {
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
  for (std::int64_t k = 0; k < std::ssize(from); ++k)
    std::memcpy(rows.row(to[k]), rows.row(from[k]), rows.row_bytes);
}

template <class Id>
void put_in_order(const Cpu&, const Buffer<std::int64_t>& places, Id* ids, std::int64_t* order) {
  const Buffer<Id> old_ids(ids, ids + places.size());
  const Buffer<std::int64_t> old_order(order, order + places.size());
  for (std::size_t k = 0; k < places.size(); ++k) {
    ids[k] = old_ids[places[k]];
    order[k] = old_order[places[k]];
  }
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

template class RowCacheOn<Cpu>;
template void RowCacheOn<Cpu>::begin(const Cpu&, OwnerGroups<std::int32_t>&, std::int64_t,
                                     std::vector<std::int64_t>&, Buffer<std::byte>&);
template void RowCacheOn<Cpu>::begin(const Cpu&, OwnerGroups<std::int64_t>&, std::int64_t,
                                     std::vector<std::int64_t>&, Buffer<std::byte>&);

}  // namespace espalier
