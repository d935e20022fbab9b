// What a cache of history holds and where: keys, ages, scores, and the slots of their rows. Memory
// of the host, whatever space the rows are in.
//
// Keys are found by open addressing. Beside that each shard keeps its keys in a queue in the order
// in which they go: by stamp, then the largest score, then the key; without a bound only the stamp
// matters, and one queue does for all. Steps commit in order, so new keys always join at the end; a
// key that was dropped or written anew since leaves a place in the queue that its stamp gives away,
// and such places are swept when they are as many as the others.
//
// Law: what is held is a function of the steps committed, shard by shard; slots are not.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "espalier/base/host_device.hpp"
#include "espalier/history/history_cache.hpp"

namespace espalier {

/// A layer and a vertex < 2^48 in one number; ascending by (layer, vertex).
inline std::int64_t history_key(int layer, std::int64_t vertex) {
  return (static_cast<std::int64_t>(layer) << 48) | vertex;
}
inline int layer_of(std::int64_t key) {
  return static_cast<int>(key >> 48);
}
inline std::int64_t vertex_of(std::int64_t key) {
  return key & ((std::int64_t{1} << 48) - 1);
}

/// A row to be written: where it lies among those of its step.
struct IndexedWrite {
  std::int64_t key = 0, batch = 0;
  std::uint64_t score = 0;
  std::int64_t source = 0;
};

/// Of each key the write of the lowest batch; ascending by key.
void keep_lowest(std::vector<IndexedWrite>& writes);

/// Row `source` of a step goes to row `slot` of the cache.
struct PlacedRow {
  std::int64_t source, slot;
};

class HistoryIndex {
 public:
  struct Entry {
    std::int64_t key = -1, stamp = 0;
    std::uint64_t score = 0;
  };

  /// entries: of all kHistoryShards together, 0: as many as come.
  explicit HistoryIndex(std::int64_t entries)
      : entries_(entries), shards_(entries == 0 ? 1 : kHistoryShards) {}

  /// The slot of a key, or -1.
  std::int64_t find(std::int64_t key) const;
  /// Of a free slot one with key -1.
  const Entry& entry(std::int64_t slot) const { return slots_[slot]; }
  std::int64_t size() const { return size_; }
  /// Slots are less than this.
  std::int64_t slots() const { return std::ssize(slots_); }

  /// One step: evictions of rows stamped `seen` or before, then writes (the lowest batch of a key),
  /// then all stamped before `oldest` go, then what is too much for its shard. `placed`: the writes
  /// that are held now.
  void commit(std::int64_t step, std::span<const std::int64_t> evictions, std::int64_t seen,
              std::vector<IndexedWrite> writes, std::int64_t oldest, std::vector<PlacedRow>& placed);

  /// Instead of all that is held: entry k, in any order, gets slot k.
  void restore(std::vector<Entry> entries);

 private:
  struct Queued {
    std::int64_t key, stamp;
  };
  struct Shard {
    std::deque<Queued> queue;
    std::int64_t held = 0;
  };

  bool is_held(const Queued& queued) const;
  std::size_t home_of(std::int64_t key) const;
  void insert(std::int64_t key, std::int64_t slot);
  void remove(std::int64_t slot);
  std::int64_t take_slot(const Entry& entry);
  void grow();
  Shard& shard_of(std::int64_t key) {
    return shards_[shards_.size() == 1 ? 0 : history_shard(vertex_of(key))];
  }
  void commit_bounded(std::int64_t step, std::vector<IndexedWrite>& writes, std::int64_t oldest,
                      std::vector<PlacedRow>& placed);
  void commit_all(std::int64_t step, std::vector<IndexedWrite>& writes, std::int64_t oldest,
                  std::vector<PlacedRow>& placed);
  /// Drops the first that are stamped before `oldest`, and more until `room` fit.
  void make_room(Shard& shard, std::int64_t oldest, std::int64_t room);
  void sweep(Shard& shard);

  std::int64_t entries_;
  std::vector<Entry> slots_;  ///< key -1: free
  std::vector<std::int64_t> free_;
  std::int64_t size_ = 0;
  std::vector<std::int64_t> table_;  ///< slots, or -1; a power of two, half full at most
  std::vector<Shard> shards_;
};

}  // namespace espalier
