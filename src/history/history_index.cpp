#include "history_index.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

#include "espalier/base/error.hpp"

namespace espalier {

void keep_lowest(std::vector<IndexedWrite>& writes) {
  const auto out_of_order = [](const IndexedWrite& a, const IndexedWrite& b) { return a.key >= b.key; };
  if (std::ranges::adjacent_find(writes, out_of_order) == writes.end()) return;
  std::ranges::sort(writes, {}, [](const IndexedWrite& write) { return std::pair(write.key, write.batch); });
  const auto repeated = std::ranges::unique(writes, {}, &IndexedWrite::key);
  writes.erase(repeated.begin(), repeated.end());
}

// ---- Keys ---------------------------------------------------------------------------------------

std::size_t HistoryIndex::home_of(std::int64_t key) const {
  return mix(static_cast<std::uint64_t>(key)) & (table_.size() - 1);
}

std::int64_t HistoryIndex::find(std::int64_t key) const {
  if (table_.empty()) return -1;
  for (auto at = home_of(key);; at = (at + 1) & (table_.size() - 1)) {
    const auto slot = table_[at];
    if (slot < 0 || slots_[slot].key == key) return slot;
  }
}

void HistoryIndex::insert(std::int64_t key, std::int64_t slot) {
  auto at = home_of(key);
  while (table_[at] >= 0) at = (at + 1) & (table_.size() - 1);
  table_[at] = slot;
}

void HistoryIndex::grow() {
  table_.assign(std::max<std::size_t>(16, 2 * table_.size()), -1);
  for (std::int64_t slot = 0; slot < slots(); ++slot)
    if (slots_[slot].key >= 0) insert(slots_[slot].key, slot);
}

std::int64_t HistoryIndex::take_slot(const Entry& entry) {
  if (2 * static_cast<std::size_t>(size_ + 1) > table_.size()) grow();
  auto slot = slots();
  if (free_.empty()) {
    slots_.push_back(entry);
  } else {
    slot = free_.back();
    free_.pop_back();
    slots_[slot] = entry;
  }
  insert(entry.key, slot);
  ++size_;
  ++shard_of(entry.key).held;
  return slot;
}

// What stands behind moves up where its home allows, so that no search ends too early.
void HistoryIndex::remove(std::int64_t slot) {
  const auto mask = table_.size() - 1;
  auto hole = home_of(slots_[slot].key);
  while (table_[hole] != slot) hole = (hole + 1) & mask;
  for (auto at = (hole + 1) & mask; table_[at] >= 0; at = (at + 1) & mask) {
    const auto home = home_of(slots_[table_[at]].key);
    if (((at - home) & mask) < ((at - hole) & mask)) continue;
    table_[hole] = table_[at];
    hole = at;
  }
  table_[hole] = -1;
  --shard_of(slots_[slot].key).held;
  --size_;
  free_.push_back(slot);
  slots_[slot] = {};
}

// ---- Steps --------------------------------------------------------------------------------------

bool HistoryIndex::is_held(const Queued& queued) const {
  const auto slot = find(queued.key);
  return slot >= 0 && slots_[slot].stamp == queued.stamp;
}

void HistoryIndex::make_room(Shard& shard, std::int64_t oldest, std::int64_t room) {
  auto& queue = shard.queue;
  while (!queue.empty() && (queue.front().stamp < oldest || shard.held > room)) {
    const auto slot = find(queue.front().key);
    if (slot >= 0 && slots_[slot].stamp == queue.front().stamp) remove(slot);
    queue.pop_front();
  }
}

void HistoryIndex::sweep(Shard& shard) {
  constexpr std::int64_t kFew = 64;
  if (std::ssize(shard.queue) <= 2 * shard.held + kFew) return;
  std::erase_if(shard.queue, [&](const Queued& queued) { return !is_held(queued); });
}

void HistoryIndex::commit(std::int64_t step, std::span<const std::int64_t> evictions, std::int64_t seen,
                          std::vector<IndexedWrite> writes, std::int64_t oldest,
                          std::vector<PlacedRow>& placed) {
  for (const auto key : evictions) {
    const auto slot = find(key);
    if (slot >= 0 && slots_[slot].stamp <= seen) remove(slot);
  }
  if (step < oldest) writes.clear();
  placed.clear();
  if (entries_ == 0)
    commit_all(step, writes, oldest, placed);
  else
    commit_bounded(step, writes, oldest, placed);
  for (auto& shard : shards_) sweep(shard);
}

// A row that is written anew keeps its slot.
void HistoryIndex::commit_all(std::int64_t step, std::vector<IndexedWrite>& writes, std::int64_t oldest,
                              std::vector<PlacedRow>& placed) {
  auto& shard = shards_.front();
  placed.reserve(writes.size());
  if (!std::ranges::is_sorted(writes, {}, &IndexedWrite::batch))
    std::ranges::stable_sort(writes, {}, &IndexedWrite::batch);
  for (const auto& write : writes) {
    const Entry entry = {write.key, step, write.score};
    auto slot = find(write.key);
    if (slot >= 0 && slots_[slot].stamp == step) continue;  // of a lower batch
    if (slot >= 0)
      slots_[slot] = entry;
    else
      slot = take_slot(entry);
    placed.push_back({write.source, slot});
    shard.queue.push_back({write.key, step});
  }
  make_room(shard, oldest, std::numeric_limits<std::int64_t>::max());
}

// New keys are the last to go, so old ones make room for them; of too many new ones the first go.
void HistoryIndex::commit_bounded(std::int64_t step, std::vector<IndexedWrite>& writes, std::int64_t oldest,
                                  std::vector<PlacedRow>& placed) {
  keep_lowest(writes);
  for (const auto& write : writes)
    if (const auto slot = find(write.key); slot >= 0) remove(slot);
  std::vector<std::vector<IndexedWrite>> of_shards(shards_.size());
  for (const auto& write : writes) of_shards[history_shard(vertex_of(write.key))].push_back(write);
  for (int s = 0; s < kHistoryShards; ++s) {
    auto& mine = of_shards[s];
    std::ranges::sort(mine, {}, [](const IndexedWrite& write) { return std::pair(~write.score, write.key); });
    auto& shard = shards_[s];
    const auto quota = entries_ / kHistoryShards + (s < entries_ % kHistoryShards),
               kept = std::min(std::ssize(mine), quota);
    make_room(shard, oldest, quota - kept);
    for (auto write = mine.end() - kept; write != mine.end(); ++write) {
      placed.push_back({write->source, take_slot({write->key, step, write->score})});
      shard.queue.push_back({write->key, step});
    }
  }
}

void HistoryIndex::restore(std::vector<Entry> entries) {
  *this = HistoryIndex(entries_);
  for (const auto& entry : entries) {
    ESPALIER_CHECK(find(entry.key) < 0, "vertex {} of layer {} twice", vertex_of(entry.key),
                   layer_of(entry.key));
    take_slot(entry);
  }
  std::ranges::sort(entries, {},
                    [](const Entry& entry) { return std::tuple(entry.stamp, ~entry.score, entry.key); });
  for (const auto& entry : entries) shard_of(entry.key).queue.push_back({entry.key, entry.stamp});
}

}  // namespace espalier
