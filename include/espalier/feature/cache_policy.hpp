// Which rows of features a rank keeps of those that others own, or that lie on its disk
// (feature/row_cache.hpp): keys.
//
// Of the rows that are held and those that arrive, the ones with the smallest keys stay. Of equal
// keys the one that is held stays; of two that are held the one with the larger id goes.
//
//     kDegree   the place in a list by degree: fixed
//     kLru      how many fetches ago one asked for the row last
//     kBelady   the next fetch that is known to ask for the row (Belady 1966), or never. Of known
//               fetches no rule serves more, where a fetch asks for each row once.
//
// So a row that arrives and would be used later than all that are held is passed by. A row without
// a key takes only room that is free. All of this is on the host and of one rank: what is held
// changes no result, only what is sent.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "espalier/base/execution.hpp"

namespace espalier {

enum class CacheRule { kDegree, kLru, kBelady };

/// "degree", "lru" or "belady"; throws UserError(kUsage) for another word.
CacheRule cache_rule_of(const std::string& name);

template <class Index, class Space>
struct DistCsr;
/// The list of kDegree before anything was fetched. Collective over the process column of a's grid:
/// of each part the `most` vertices whose rows of `a` have most entries, all of them together: the
/// most entries first, of as many by id.
template <class Index>
std::vector<std::int64_t> rows_by_degree(const DistCsr<Index, Cpu>& a, std::int64_t most);

/// Ids, each at a position: open addressing, 4 bytes a place, at most half full.
class IdPositions {
 public:
  /// The position of an id, or -1.
  std::int32_t find(std::int64_t id) const;
  /// A new id at a position that is free.
  void put(std::int64_t id, std::int32_t position);
  /// Takes a known id out. Its position is free.
  void erase(std::int64_t id);
  /// Memory for so many at once, so that it is not grown by halves.
  void reserve(std::int64_t ids);
  std::int64_t size() const { return size_; }
  std::int64_t id(std::int32_t position) const { return ids_[static_cast<std::size_t>(position)]; }
  /// Bytes that it takes.
  std::int64_t bytes() const;

 private:
  std::size_t home(std::int64_t id) const;
  std::size_t free_place(std::int64_t id) const;
  void grow(std::size_t places);

  std::vector<std::int64_t> ids_;     // by position; -1: free
  std::vector<std::int32_t> places_;  // positions, or -1
  std::int64_t size_ = 0;
};

/// Rows that are held, each in a slot, by keys.
class CachePolicy {
 public:
  static constexpr std::int64_t kNever = INT64_MAX;

  /// A row that has arrived gets a slot; `missed`: its place in the list.
  struct Admission {
    std::int64_t missed;
    std::int32_t slot;
  };
  struct Move {
    std::int32_t from, to;
  };

  explicit CachePolicy(CacheRule rule) : rule_(rule) {}

  /// Does it want to know what comes?
  bool prefetches() const { return rule_ == CacheRule::kBelady; }
  std::int64_t slots() const { return slots_; }
  std::int64_t size() const { return held_.size(); }
  std::int32_t slot_of(std::int64_t id) const { return held_.find(id); }
  /// Bytes of what rows are found by.
  std::int64_t bytes() const { return held_.bytes(); }

  /// The list of kDegree, best first. Of it no more are looked at than were ever held at once.
  void set_list(std::vector<std::int64_t> ids);
  /// The most rows from now on; beyond that those with the largest keys go. Slots are then below
  /// `slots`: the rows that must move for that, to slots that are free.
  std::vector<Move> resize(std::int64_t slots);

  /// Fetch number `fetch`, counted from 0, which has not begun, will ask for these, and perhaps for
  /// more; `end_prefetch` when all that is known was said: O(T log T).
  void prefetch(std::int64_t fetch, std::span<const std::int64_t> ids);
  void end_prefetch();

  /// The next fetch begins: slots[k] is where row ids[k] is, or -1.
  void begin(std::span<const std::int64_t> ids, std::span<std::int32_t> slots);
  /// Rows that a fetch did not find have arrived: which are taken up, and where. Slots are
  /// distinct.
  std::vector<Admission> end(std::span<const std::int64_t> missed);

 private:
  struct Entry {
    std::int64_t key, id;
    friend auto operator<=>(const Entry&, const Entry&) = default;
  };

  std::int64_t next_use(std::int64_t id) const;
  std::int64_t key_of(std::int64_t id) const;
  void set_key(std::int32_t slot, std::int64_t key);
  void judge_anew(std::int64_t up_to);
  void make_heap();
  Entry largest();
  void drop(std::int64_t id);
  void rank();

  CacheRule rule_;
  std::int64_t fetch_ = -1;  // begun last
  std::int64_t slots_ = 0, most_slots_ = 0;
  std::vector<std::int64_t> list_;
  IdPositions held_, ranks_;
  std::vector<std::int64_t> keys_;  // by slot; of those that were ever used
  std::vector<std::int32_t> free_;  // of those
  std::vector<Entry> heap_;         // the largest first; an entry counts where it is its row's key
  // What is known of coming fetches: (id, fetch), ascending once settled; how many rows of each.
  std::vector<std::pair<std::int64_t, std::int64_t>> uses_;
  std::map<std::int64_t, std::int64_t> asked_by_;
};

}  // namespace espalier
