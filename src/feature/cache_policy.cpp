#include "espalier/feature/cache_policy.hpp"

#include <algorithm>
#include <bit>

#include "espalier/base/error.hpp"
#include "espalier/product/dist_csr.hpp"

namespace espalier {

CacheRule cache_rule_of(const std::string& name) {
  if (name == "degree") return CacheRule::kDegree;
  if (name == "lru") return CacheRule::kLru;
  if (name == "belady") return CacheRule::kBelady;
  usage_error("rows of features are kept by degree, lru or belady, not by {}", name);
}

// ---- vertices in the order of their degrees --------------------------------------------------

namespace {

struct OfDegree {
  std::int64_t minus_entries, vertex;
  friend auto operator<=>(const OfDegree&, const OfDegree&) = default;
};

}  // namespace

template <class Index>
std::vector<std::int64_t> rows_by_degree(const DistCsr<Index>& a, std::int64_t most) {
  Buffer<OfDegree> rows(static_cast<std::size_t>(a.ownership.size(a.part)));
  for (std::int64_t k = 0; k < std::ssize(rows); ++k)
    rows[k] = {-a.row_size(k), a.ownership.vertex(a.part, k)};
  const auto taken = std::min<std::int64_t>(most, std::ssize(rows));
  std::ranges::partial_sort(rows, rows.begin() + taken);
  rows.resize(static_cast<std::size_t>(taken));
  if (a.parts() > 1) {
    rows = a.grid->column_comm().all_gather_v(std::span<const OfDegree>(rows), "setup");
    std::ranges::sort(rows);
  }
  std::vector<std::int64_t> vertices;
  for (const auto& row : rows) vertices.push_back(row.vertex);
  return vertices;
}

template std::vector<std::int64_t> rows_by_degree(const DistCsr<std::int32_t>&, std::int64_t);
template std::vector<std::int64_t> rows_by_degree(const DistCsr<std::int64_t>&, std::int64_t);

// ---- IdPositions --------------------------------------------------------------------------------

std::size_t IdPositions::home(std::int64_t id) const {
  return (static_cast<std::uint64_t>(id) * 0x9e3779b97f4a7c15u >> 20) & (places_.size() - 1);
}

std::size_t IdPositions::free_place(std::int64_t id) const {
  auto at = home(id);
  while (places_[at] >= 0) at = (at + 1) & (places_.size() - 1);
  return at;
}

std::int32_t IdPositions::find(std::int64_t id) const {
  if (places_.empty()) return -1;
  for (auto at = home(id); places_[at] >= 0; at = (at + 1) & (places_.size() - 1))
    if (ids_[places_[at]] == id) return places_[at];
  return -1;
}

void IdPositions::put(std::int64_t id, std::int32_t position) {
  if (2 * (size_ + 1) > std::ssize(places_)) grow(2 * places_.size());
  if (position >= std::ssize(ids_)) ids_.resize(position + 1, -1);
  ids_[position] = id;
  places_[free_place(id)] = position;
  ++size_;
}

// Places behind the one that is free now move up, where that is nearer to their home.
void IdPositions::erase(std::int64_t id) {
  const auto mask = places_.size() - 1;
  auto at = home(id);
  while (ids_[places_[at]] != id) at = (at + 1) & mask;
  ids_[places_[at]] = -1;
  for (auto next = (at + 1) & mask; places_[next] >= 0; next = (next + 1) & mask) {
    const auto way = (next - home(ids_[places_[next]])) & mask;
    if (way < ((next - at) & mask)) continue;
    places_[at] = places_[next];
    at = next;
  }
  places_[at] = -1;
  --size_;
}

void IdPositions::reserve(std::int64_t ids) {
  ids_.reserve(ids);
  const auto places = std::bit_ceil(static_cast<std::uint64_t>(2 * ids));
  if (places > places_.size()) grow(places);
}

void IdPositions::grow(std::size_t places) {
  std::vector<std::int32_t>(std::max<std::size_t>(places, 16), -1).swap(places_);
  for (std::int32_t position = 0; position < std::ssize(ids_); ++position)
    if (ids_[position] >= 0) places_[free_place(ids_[position])] = position;
}

std::int64_t IdPositions::bytes() const {
  return static_cast<std::int64_t>(ids_.capacity() * sizeof(ids_[0]) +
                                   places_.capacity() * sizeof(places_[0]));
}

// ---- CachePolicy --------------------------------------------------------------------------------

// The first fetch after this one that will ask for the row.
std::int64_t CachePolicy::next_use(std::int64_t id) const {
  const auto found = std::ranges::upper_bound(uses_, std::pair(id, fetch_));
  return found != uses_.end() && found->first == id ? found->second : kNever;
}

std::int64_t CachePolicy::key_of(std::int64_t id) const {
  if (rule_ == CacheRule::kBelady) return next_use(id);
  // Of fetches later the smaller.
  if (rule_ == CacheRule::kLru) return kNever - 1 - fetch_;
  const auto place = ranks_.find(id);
  return place >= 0 ? place : kNever;
}

void CachePolicy::set_key(std::int32_t slot, std::int64_t key) {
  if (keys_[slot] == key) return;
  keys_[slot] = key;
  heap_.push_back({key, held_.id(slot)});
  std::ranges::push_heap(heap_);
  if (2 * std::ssize(heap_) > 3 * size() + 64) make_heap();
}

void CachePolicy::make_heap() {
  heap_.clear();
  for (std::int32_t slot = 0; slot < std::ssize(keys_); ++slot)
    if (keys_[slot] >= 0) heap_.push_back({keys_[slot], held_.id(slot)});
  std::ranges::make_heap(heap_);
}

CachePolicy::Entry CachePolicy::largest() {
  for (;;) {
    const auto top = heap_.front();
    const auto slot = held_.find(top.id);
    if (slot >= 0 && keys_[slot] == top.key) return top;
    std::ranges::pop_heap(heap_);
    heap_.pop_back();
  }
}

void CachePolicy::drop(std::int64_t id) {
  const auto slot = held_.find(id);
  held_.erase(id);
  keys_[slot] = -1;
  free_.push_back(slot);
}

// New keys for rows whose keys are at most `up_to`.
void CachePolicy::judge_anew(std::int64_t up_to) {
  for (std::int32_t slot = 0; slot < std::ssize(keys_); ++slot)
    if (keys_[slot] >= 0 && keys_[slot] <= up_to) keys_[slot] = key_of(held_.id(slot));
  make_heap();
}

void CachePolicy::rank() {
  const auto best = std::span(list_).first(std::min<std::size_t>(list_.size(), most_slots_));
  ranks_ = {};
  ranks_.reserve(std::ssize(best));
  for (std::int32_t place = 0; place < std::ssize(best); ++place) ranks_.put(best[place], place);
  if (rule_ == CacheRule::kDegree) judge_anew(kNever);
}

void CachePolicy::set_list(std::vector<std::int64_t> ids) {
  list_ = std::move(ids);
  rank();
}

std::vector<CachePolicy::Move> CachePolicy::resize(std::int64_t slots) {
  if (slots > most_slots_) {
    most_slots_ = slots;
    rank();
  }
  const bool shrinks = slots < slots_;
  slots_ = slots;
  if (!shrinks) return {};
  while (size() > slots) drop(largest().id);
  std::vector<Move> moves;
  IdPositions held;  // anew, so that it takes less
  std::erase_if(free_, [&](std::int32_t slot) { return slot >= slots; });
  for (std::int32_t from = 0; from < std::ssize(keys_); ++from) {
    if (keys_[from] < 0) continue;
    auto to = from;
    if (from >= slots) {
      to = free_.back();
      free_.pop_back();
      moves.push_back({from, to});
      keys_[to] = keys_[from];
    }
    held.put(held_.id(from), to);
  }
  held_ = std::move(held);
  if (std::ssize(keys_) > slots) keys_.resize(slots);
  make_heap();
  return moves;
}

void CachePolicy::prefetch(std::int64_t fetch, std::span<const std::int64_t> ids) {
  asked_by_[fetch] += std::ssize(ids);
  for (const auto id : ids) {
    uses_.emplace_back(id, fetch);
    if (!prefetches()) continue;
    if (const auto slot = held_.find(id); slot >= 0 && keys_[slot] > fetch) set_key(slot, fetch);
  }
}

void CachePolicy::end_prefetch() {
  std::erase_if(uses_, [&](const auto& use) { return use.second <= fetch_; });
  asked_by_.erase(asked_by_.begin(), asked_by_.upper_bound(fetch_));
  std::ranges::sort(uses_);
}

void CachePolicy::begin(std::span<const std::int64_t> ids, std::span<std::int32_t> slots) {
  ++fetch_;
  for (std::size_t k = 0; k < ids.size(); ++k) {
    const auto slot = slots[k] = held_.find(ids[k]);
    if (slot >= 0 && rule_ != CacheRule::kDegree) set_key(slot, key_of(ids[k]));
  }
  if (!prefetches()) return;
  // Rows that were to be used and are not: history has pruned what needs them.
  const auto said = asked_by_.find(fetch_);
  if ((said != asked_by_.end() ? said->second : 0) != std::ssize(ids)) judge_anew(fetch_);
}

std::vector<CachePolicy::Admission> CachePolicy::end(std::span<const std::int64_t> missed) {
  struct Arrived {
    std::int64_t key, id, missed;
    auto operator<=>(const Arrived&) const = default;
  };
  std::vector<Arrived> arrived;
  for (std::size_t k = 0; k < missed.size() && slots_ > 0; ++k) {
    if (held_.find(missed[k]) >= 0) continue;  // an earlier fetch has brought it meanwhile
    const auto key = key_of(missed[k]);
    if (key == kNever && size() == slots_) continue;
    arrived.push_back({key, missed[k], static_cast<std::int64_t>(k)});
  }
  std::ranges::sort(arrived);  // so that none that enters has to go again
  std::vector<Admission> admitted;
  for (const auto& row : arrived) {
    if (held_.find(row.id) >= 0) continue;
    if (size() == slots_) {
      const auto last = largest();
      if (last.key <= row.key) break;
      drop(last.id);
    }
    if (free_.empty()) {
      free_.push_back(static_cast<std::int32_t>(keys_.size()));
      keys_.push_back(-1);
    }
    const auto slot = free_.back();
    free_.pop_back();
    held_.put(row.id, slot);
    set_key(slot, row.key);
    admitted.push_back({row.missed, slot});
  }
  return admitted;
}

}  // namespace espalier
