// One cache of history for the grid, for every space: training_history.cpp and .cu instantiate
// it. Keys, and what is said about them, go from host to host; rows go in the memory of
// the space.
#pragma once

#include <algorithm>
#include <numeric>

#include "espalier/base/id_map.hpp"
#include "espalier/base/row_range.hpp"
#include "espalier/history/grid_history.hpp"
#include "history_cache.inl.hpp"

namespace espalier {

/// Distinct keys, or vertices, as they travel to those who hold them.
struct KeysByRank {
  IdMap numbers;                     ///< in the order in which keys came
  std::vector<std::int64_t> places;  ///< of each number: where its key stands
  Buffer<std::int64_t> keys;         ///< rank after rank
  std::vector<std::int64_t> counts;  ///< [ranks]

  /// rank_of(key)
  template <class RankOf>
  KeysByRank(std::span<const std::int64_t> wanted, int ranks, const RankOf& rank_of)
      : numbers(std::ssize(wanted)), counts(static_cast<std::size_t>(ranks), 0) {
    std::vector<std::int64_t> distinct;
    for (const auto key : wanted) {
      if (numbers.insert(key) < std::ssize(distinct)) continue;
      distinct.push_back(key);
      ++counts[rank_of(key)];
    }
    std::vector<std::int64_t> next(counts.size(), 0);
    std::exclusive_scan(counts.begin(), counts.end(), next.begin(), std::int64_t{0});
    keys.resize(distinct.size());
    for (const auto key : distinct) {
      places.push_back(next[rank_of(key)]++);
      keys[places.back()] = key;
    }
  }
  std::int64_t place(std::int64_t key) const { return places[numbers.find(key)]; }
};

/// What travels beside a written row.
struct WrittenKey {
  std::int64_t key;
  std::uint64_t score;
  std::int64_t batch;
};
static_assert(sizeof(WrittenKey) == static_cast<std::size_t>(kHistoryWriteBytes));

inline std::vector<std::int64_t> in_words(std::span<const std::int64_t> counts, std::int64_t words) {
  std::vector<std::int64_t> sizes(counts.begin(), counts.end());
  for (auto& size : sizes) size *= words;
  return sizes;
}

/// Marks of which of several ranks' rows for one key stays: that of the lowest batch.
inline Buffer<std::uint8_t> lowest_of_each_key(std::span<const WrittenKey> keys) {
  std::vector<IndexedWrite> lowest;
  for (const auto& [key, score, batch] : keys) lowest.push_back({key, batch, score, std::ssize(lowest)});
  keep_lowest(lowest);
  Buffer<std::uint8_t> marks(keys.size(), 0);
  for (const auto& write : lowest) marks[write.source] = 1;
  return marks;
}

/// How many of counts[r] marks, one rank's after the other's, are set.
inline std::vector<std::int64_t> marked_of_each_rank(std::span<const std::uint8_t> marks,
                                                     std::span<const std::int64_t> counts) {
  std::vector<std::int64_t> marked;
  std::size_t next = 0;
  for (const auto count : counts) {
    auto& of_rank = marked.emplace_back(0);
    for (std::int64_t k = 0; k < count; ++k) of_rank += marks[next++];
  }
  return marked;
}

/// Rows and evictions of steps under way, on the rank whose batches they are of.
template <class Space>
struct GridHistoryOn<Space>::Outgoing : HistoryStepsOn<Space> {};

template <class Space>
GridHistoryOn<Space>::GridHistoryOn(const GridOn<Space>& grid, const HistoryShape& shape)
    : grid_(&grid), part_(shape), outgoing_(std::make_unique<Outgoing>()) {
  ESPALIER_CHECK(shape.layers <= 8, "history of {} layers over a grid", shape.layers);
  const int ranks = grid.world().size();
  for (int rank = 0; rank < ranks; ++rank)
    rank_of_shard_.insert(rank_of_shard_.end(), even_range(kHistoryShards, ranks, rank).size(), rank);
}
template <class Space>
GridHistoryOn<Space>::~GridHistoryOn() = default;

template <class Space>
int GridHistoryOn<Space>::rank_of(std::int64_t vertex) const {
  return rank_of_shard_[history_shard(vertex)];
}

template <class Space>
void GridHistoryOn<Space>::begin(const Space& space, std::int64_t step) {
  part_.begin(space, step);
  outgoing_->all[step];
}

template <class Space>
void GridHistoryOn<Space>::find(const Space& space, std::span<const MinibatchOn<Space>> minibatches,
                                std::vector<HistoryFoundOn<Space>>& found, std::string_view label) const {
  const auto& world = grid_->world().host();
  std::vector<Buffer<std::int64_t>> lists;
  std::vector<std::int64_t> all;
  for (const auto& minibatch : minibatches) {
    const auto& list = lists.emplace_back(read_longest_list(space, shape(), minibatch));
    all.insert(all.end(), list.begin(), list.end());
  }
  const KeysByRank asked(all, world.size(), [&](std::int64_t v) { return rank_of(v); });
  const auto theirs = world.all_to_all_v(std::span<const std::int64_t>(asked.keys), asked.counts, label);
  Buffer<std::uint8_t> answers(theirs.data.size(), 0), masks;
  for (std::size_t k = 0; k < answers.size(); ++k)
    for (int l = 1; l <= shape().layers; ++l)
      answers[k] |= static_cast<std::uint8_t>((part_.slot_of(l, theirs.data[k]) >= 0) << (l - 1));
  world.all_to_all_v(std::span<const std::uint8_t>(answers), theirs.counts, asked.counts, masks, label);
  found.clear();
  for (std::size_t b = 0; b < minibatches.size(); ++b) {
    std::vector<std::uint8_t> of_list;
    for (const auto v : lists[b]) of_list.push_back(masks[asked.place(v)]);
    found.push_back(
        flags_of(space, shape(), part_.step(), minibatches[b], lists[b],
                 [&](int l, std::int64_t i) { return (of_list[i] >> (l - 1) & 1) != 0 ? 0 : -1; }));
    for (auto& slots : found.back().slots) slots.clear();
  }
  const auto cost = history_request_cost(world.size(), static_cast<double>(asked.keys.size()), 1);
  grid_->traffic().predict(label, cost.messages, cost.bytes);
}

template <class Space>
void GridHistoryOn<Space>::read(const Space& space, std::span<const HistoryReadOn<Space>> wanted,
                                std::string_view label) const {
  const auto& world = grid_->world();
  const auto words = part_.row_words();
  std::vector<Buffer<std::int64_t>> lists;
  std::vector<std::int64_t> all;
  for (const auto& of : wanted) {
    auto& list = lists.emplace_back(of.vertices.size());
    copy_from(space, of.vertices.data(), std::ssize(of.vertices), list.data());
    for (auto& v : list) v = history_key(of.layer, v);
    all.insert(all.end(), list.begin(), list.end());
  }
  const KeysByRank asked(all, world.size(), [&](std::int64_t key) { return rank_of(vertex_of(key)); });
  const auto theirs =
      world.host().all_to_all_v(std::span<const std::int64_t>(asked.keys), asked.counts, label);
  std::vector<std::int64_t> slots;
  for (const auto key : theirs.data) {
    slots.push_back(part_.slot_of(layer_of(key), vertex_of(key)));
    ESPALIER_CHECK(slots.back() >= 0, "vertex {} of layer {} is not held", vertex_of(key), layer_of(key));
  }
  Array<Space, std::uint32_t> answers(slots.size() * static_cast<std::size_t>(words)),
      arrived(asked.keys.size() * static_cast<std::size_t>(words));
  part_.copy_kept(space, slots, answers.data());
  world.all_to_all_v(answers.data(), in_words(theirs.counts, words), arrived.data(),
                     in_words(asked.counts, words), label);
  for (std::size_t m = 0; m < wanted.size(); ++m) {
    std::vector<std::int32_t> places;
    for (const auto key : lists[m]) places.push_back(static_cast<std::int32_t>(asked.place(key)));
    const auto from = copy_to(space, std::span<const std::int32_t>(places));
    auto& rows = *wanted[m].rows;
    rows.resize(std::ssize(places), shape().width);
    read_rows(space, shape().precision, arrived.data(), words, from.data(), nullptr, rows);
  }
  const auto cost = history_request_cost(world.size(), static_cast<double>(asked.keys.size()),
                                         4.0 * static_cast<double>(words));
  grid_->traffic().predict(label, cost.messages, cost.bytes);
}

template <class Space>
void GridHistoryOn<Space>::write(const Space& space, std::int64_t step, std::int64_t batch, int layer,
                                 std::span<const HistoryWrite> writes, ConstMatrixView<float, Space> rows) {
  outgoing_->begun(step).write(space, shape(), batch, layer, writes, rows);
}

template <class Space>
void GridHistoryOn<Space>::evict(std::int64_t step, int layer, std::span<const std::int64_t> vertices) {
  outgoing_->begun(step).evict(layer, vertices);
}

template <class Space>
void GridHistoryOn<Space>::end(const Space& space, std::int64_t step, std::string_view label) {
  const auto& world = grid_->world();
  const auto words = part_.row_words();
  auto& out = outgoing_->begun(step);
  const auto to_rank = [&](std::int64_t key) { return rank_of(vertex_of(key)); };

  // Rank after rank.
  auto writes = out.lowest_writes();
  std::ranges::stable_sort(writes, {}, [&](const IndexedWrite& write) { return to_rank(write.key); });
  std::vector<std::int64_t> counts(static_cast<std::size_t>(world.size()), 0);
  Buffer<WrittenKey> keys;
  for (const auto& write : writes) {
    ++counts[to_rank(write.key)];
    keys.push_back({write.key, write.score, write.batch});
  }
  const auto theirs = world.host().all_to_all_v(std::span<const WrittenKey>(keys), counts, label);

  // Rows that will not be held stay where they are.
  const auto taken = lowest_of_each_key(theirs.data);
  Buffer<std::uint8_t> wanted;
  world.host().all_to_all_v(std::span<const std::uint8_t>(taken), theirs.counts, counts, wanted, label);
  std::vector<PlacedRow> placed;
  for (std::size_t k = 0; k < writes.size(); ++k)
    if (wanted[k] != 0) placed.push_back({writes[k].source, std::ssize(placed)});
  const auto sent = std::ssize(placed);
  Array<Space, std::uint32_t> rows(static_cast<std::size_t>(sent * words));
  out.place(space, std::move(placed), words, rows.data());
  const auto sizes = marked_of_each_rank(wanted, counts),
             arriving = marked_of_each_rank(taken, theirs.counts);
  Array<Space, std::uint32_t> arrived(
      static_cast<std::size_t>(std::reduce(arriving.begin(), arriving.end(), std::int64_t{0}) * words));
  world.all_to_all_v(rows.data(), in_words(sizes, words), arrived.data(), in_words(arriving, words), label);
  const KeysByRank evicted(out.evictions, world.size(), to_rank);
  const auto dropped =
      world.host().all_to_all_v(std::span<const std::int64_t>(evicted.keys), evicted.counts, label);

  std::vector<HistoryRecord> records;
  for (std::size_t k = 0; k < taken.size(); ++k) {
    const auto& write = theirs.data[k];
    if (taken[k] != 0)
      records.push_back({HistoryRecord::Kind::kWritten, layer_of(write.key), vertex_of(write.key), step,
                         write.batch, write.score});
  }
  part_.write_kept(step, records, std::move(arrived));
  for (const auto key : dropped.data) {
    const auto vertex = vertex_of(key);
    part_.evict(step, layer_of(key), {&vertex, 1});
  }
  part_.end(step);
  const auto cost =
      history_write_cost(world.size(), static_cast<double>(keys.size()), static_cast<double>(sent),
                         static_cast<double>(evicted.keys.size()), 4.0 * static_cast<double>(words));
  grid_->traffic().predict(label, cost.messages, cost.bytes);
  outgoing_->all.erase(step);
}

template <class Space>
void GridHistoryOn<Space>::restore(const Space& space, std::int64_t next,
                                   std::span<const HistoryRecord> records, const std::uint32_t* words) {
  part_.restore(space, next, records, words);
  outgoing_->all.clear();
}

}  // namespace espalier
