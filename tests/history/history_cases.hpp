// Steps of a cache of history for the tests of every space: what batches hit, read, write and
// evict, and what a loop over maps makes of it.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <set>

#include "espalier/base/arrays.hpp"
#include "espalier/base/half.hpp"
#include "espalier/history/history_cache.hpp"

namespace espalier {

/// The cache as the paper's algorithm in plain loops, rows as they were given.
class MapOfHistory {
 public:
  using Key = std::pair<int, std::int64_t>;
  struct Row {
    std::int64_t stamp, batch;
    std::uint64_t score;
    std::vector<float> values;
  };
  struct Step {
    std::vector<std::pair<Key, Row>> writes;
    std::set<Key> evictions;
  };
  std::map<Key, Row> held;
  std::map<std::int64_t, Step> steps;

  explicit MapOfHistory(const HistoryShape& shape) : shape_(shape) {}

  void begin(std::int64_t step) {
    for (auto s = committed_ + 1; s < step - 1; ++s) commit(s);
    step_ = step;
  }
  std::int64_t age(const Row& row) const { return step_ - row.stamp; }
  const Row* hit(int layer, std::int64_t vertex) const {
    const auto found = held.find({layer, vertex});
    return found != held.end() && step_ - found->second.stamp <= shape_.t_stale ? &found->second : nullptr;
  }

 private:
  void commit(std::int64_t s) {
    committed_ = s;
    for (const auto& key : steps[s].evictions)
      if (held.contains(key) && held.at(key).stamp < s - 1) held.erase(key);
    std::map<Key, Row> lowest;
    for (const auto& [key, row] : steps[s].writes)
      if (!lowest.contains(key) || row.batch < lowest.at(key).batch) lowest[key] = row;
    for (const auto& [key, row] : lowest) held[key] = row;
    // No later step may be so old as to read it.
    std::erase_if(held, [&](const auto& item) { return s + 2 - item.second.stamp > shape_.t_stale; });
    if (shape_.entries == 0) return;
    std::map<std::uint64_t, std::vector<std::tuple<std::int64_t, long double, Key>>> shards;
    for (const auto& [key, row] : held)
      shards[mix(static_cast<std::uint64_t>(key.second)) / (std::uint64_t{1} << 54)].emplace_back(
          row.stamp, -static_cast<long double>(row.score), key);
    for (auto& [shard, rows] : shards) {
      const auto room = shape_.entries / 1024 + (static_cast<std::int64_t>(shard) < shape_.entries % 1024);
      std::ranges::sort(rows);
      for (std::int64_t k = 0; k < std::ssize(rows) - room; ++k) held.erase(std::get<2>(rows[k]));
    }
  }

  HistoryShape shape_;
  std::int64_t step_ = -1, committed_ = -1;
};

inline void expect_kept(HistoryPrecision precision, const std::vector<float>& row, const float* read) {
  float lo = 0, hi = 0;
  for (const float x : row) lo = std::min(lo, x), hi = std::max(hi, x);
  for (std::size_t j = 0; j < row.size(); ++j) {
    if (precision == HistoryPrecision::kFloat32) EXPECT_EQ(read[j], row[j]);
    if (precision == HistoryPrecision::kFloat16) EXPECT_EQ(read[j], to_float(to_half(row[j])));
    if (precision == HistoryPrecision::kUint8)
      EXPECT_NEAR(read[j], row[j], (static_cast<double>(hi) - lo) / 510 + 0x1p-24 * hi + 0x1p-149);
  }
}

/// What a batch of a step does, the same for the cache and for the map.
struct HistoryBatch {
  struct Written {
    int layer;
    std::int64_t vertex;
    std::uint64_t score;
    std::vector<float> values;
  };
  std::int64_t step = 0, number = 0;
  std::vector<Written> writes;
  std::vector<std::pair<int, std::int64_t>> evictions;
};

/// F[0], and |F[1]|, .. |F[L]|.
struct HistoryLists {
  Buffer<std::int64_t> vertices;
  std::vector<std::int64_t> sizes;
};

inline HistoryLists random_lists(std::int64_t vertices, std::size_t layers, std::mt19937_64& random) {
  HistoryLists lists;
  std::vector<std::int64_t> all;
  for (std::int64_t v = 0; v < vertices; ++v) all.push_back(v * 1'000'003);
  std::shuffle(all.begin(), all.end(), random);
  auto size = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(vertices + 1));
  lists.vertices.assign(all.begin(), all.begin() + size);
  for (std::size_t l = 1; l <= layers; ++l) {
    size = size * 2 / 3;
    lists.sizes.push_back(size);
  }
  return lists;
}

/// What a batch does with the rows of its lists: a third of the hits are evicted, of the others
/// three quarters are written.
inline HistoryBatch random_batch(const HistoryShape& shape, const HistoryLists& lists, std::int64_t step,
                                 std::int64_t number, const auto& hit, std::mt19937_64& random) {
  HistoryBatch batch = {step, number, {}, {}};
  for (int layer = 1; layer <= shape.layers; ++layer)
    for (std::int64_t i = 0; i < lists.sizes[layer - 1]; ++i) {
      const auto v = lists.vertices[i];
      if (hit(layer, i)) {
        if (random() % 3 == 0) batch.evictions.emplace_back(layer, v);
      } else if (random() % 4 > 0) {
        // Few scores, so that ties occur.
        HistoryBatch::Written written = {layer, v, random() % 5, {}};
        for (std::int64_t j = 0; j < shape.width; ++j)
          written.values.push_back(static_cast<float>(random() % 2000) / 37.0f - (layer == 1 ? 0.0f : 20.0f));
        batch.writes.push_back(std::move(written));
      }
    }
  return batch;
}

inline void note(MapOfHistory& map, const HistoryBatch& batch) {
  auto& step = map.steps[batch.step];
  for (const auto& write : batch.writes)
    step.writes.push_back(
        {{write.layer, write.vertex}, {batch.step, batch.number, write.score, write.values}});
  for (const auto& key : batch.evictions) step.evictions.insert(key);
}

/// Rows are handed over layer by layer, out of a matrix in another order.
template <class Space, class Cache>
void note(const Space& space, Cache& cache, const HistoryBatch& batch) {
  const auto width = cache.shape().width;
  for (int layer = 1; layer <= cache.shape().layers; ++layer) {
    std::vector<HistoryWrite> writes;
    Matrix<float> rows(std::ssize(batch.writes), width);
    for (std::int64_t k = 0; k < rows.rows; ++k) {
      const auto& write = batch.writes[k];
      const auto row = rows.rows - 1 - k;
      std::ranges::copy(write.values, rows.row(row));
      if (write.layer == layer) writes.push_back({write.vertex, write.score, row});
    }
    std::vector<std::int64_t> evictions;
    for (const auto& [of_layer, vertex] : batch.evictions)
      if (of_layer == layer) evictions.push_back(vertex);
    const auto on_space = copy_to(space, std::span<const float>(rows.data));
    cache.write(space, batch.step, batch.number, layer, writes,
                ConstMatrixView<float, Space>(rows.rows, width, on_space.data()));
    cache.evict(batch.step, layer, evictions);
  }
}

/// A minibatch that has lists and no entries.
template <class Space>
MinibatchOn<Space> minibatch_of(const HistoryLists& lists, const Array<Space, std::int64_t>& vertices) {
  MinibatchOn<Space> minibatch;
  minibatch.vertices = {vertices.data(), vertices.size()};
  auto columns = std::ssize(lists.vertices);
  for (const auto rows : lists.sizes) {
    minibatch.blocks.emplace_back(rows, columns, 0, nullptr, nullptr, nullptr);
    columns = rows;
  }
  return minibatch;
}

/// Flags, and the rows of two thirds of the hits, against the map.
template <class Space>
void expect_found(const Space& space, const HistoryCacheOn<Space>& cache, const MapOfHistory& map,
                  const HistoryLists& lists, std::mt19937_64& random) {
  const auto vertices = copy_to(space, std::span<const std::int64_t>(lists.vertices));
  const auto found = cache.find(space, minibatch_of<Space>(lists, vertices));
  const auto layers = static_cast<int>(lists.sizes.size());
  ASSERT_EQ(std::ssize(found.hits), layers - 1);
  for (int layer = 1; layer < layers; ++layer) {
    const auto flags = copy_from(space, found.hits[layer - 1]);
    ASSERT_EQ(std::ssize(flags), lists.sizes[layer - 1]);
    Buffer<std::int64_t> positions;
    for (std::int64_t i = 0; i < std::ssize(flags); ++i) {
      const bool expected = map.hit(layer, lists.vertices[i]) != nullptr;
      EXPECT_EQ(flags[i] != 0, expected);
      if (expected)
        EXPECT_EQ(cache.age_of(cache.slot_of(layer, lists.vertices[i])),
                  map.age(*map.hit(layer, lists.vertices[i])));
      if (expected && random() % 3 > 0) positions.push_back(i);
    }
    const auto on_space = copy_to(space, std::span<const std::int64_t>(positions));
    Matrix<float, Space> rows;
    cache.read(space, found, layer, {on_space.data(), on_space.size()}, rows);
    const auto read = copy_from(space, rows.data);
    ASSERT_EQ(rows.rows, std::ssize(positions));
    for (std::size_t k = 0; k < positions.size(); ++k)
      expect_kept(cache.shape().precision, map.hit(layer, lists.vertices[positions[k]])->values,
                  read.data() + static_cast<std::int64_t>(k) * rows.columns);
  }
}

/// Records and their rows.
struct HistoryState {
  std::vector<HistoryRecord> records;
  Buffer<std::uint32_t> rows;
  friend bool operator==(const HistoryState&, const HistoryState&) = default;

  /// Those of the vertices that `mine` names.
  HistoryState part(const auto& mine) const {
    HistoryState part;
    const auto words = records.empty() ? 0 : std::ssize(rows) / std::ssize(records);
    for (std::size_t k = 0; k < records.size(); ++k) {
      if (!mine(records[k].vertex)) continue;
      part.records.push_back(records[k]);
      const auto row = rows.begin() + static_cast<std::int64_t>(k) * words;
      part.rows.insert(part.rows.end(), row, row + words);
    }
    return part;
  }
  std::int64_t count(HistoryRecord::Kind kind) const {
    return std::ranges::count(records, kind, &HistoryRecord::kind);
  }
};

template <class Space>
HistoryState state_of(const Space& space, HistoryCacheOn<Space>& cache, std::int64_t next) {
  HistoryState state;
  state.records = cache.records(space, next);
  state.rows.resize(state.records.size() * static_cast<std::size_t>(cache.row_words()), 7u);
  cache.read_records(space, state.records, state.rows.data());
  return state;
}

inline void expect_held(const HistoryState& state, const MapOfHistory& map) {
  using Kind = HistoryRecord::Kind;
  ASSERT_EQ(state.count(Kind::kHeld), std::ssize(map.held));
  std::size_t k = 0;
  for (const auto& [key, row] : map.held)  // ascending, as the state must be
    EXPECT_EQ(state.records[k++],
              (HistoryRecord{Kind::kHeld, key.first, key.second, row.stamp, 0, row.score}));
}

/// Steps of two or three batches, with an empty one now and then; the next step begins before a
/// step's batches write. The cache is saved and read again on its way.
template <class Space>
HistoryState expect_as_a_map(const Space& space, const HistoryShape& shape, std::int64_t vertices,
                             std::int64_t steps, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  HistoryCacheOn<Space> cache(shape);
  MapOfHistory map(shape);
  std::vector<HistoryBatch> waiting;
  std::int64_t hits = 0;
  for (std::int64_t step = 0; step < steps; ++step) {
    SCOPED_TRACE(fmt::format("step {}", step));
    cache.begin(space, step);
    map.begin(step);
    std::vector<HistoryBatch> batches;
    for (const std::int64_t number : {5, 3, 4}) {
      const auto lists = random_lists(vertices, 3, random);
      expect_found(space, cache, map, lists, random);
      const auto hit = [&](int layer, std::int64_t i) {
        return map.hit(layer, lists.vertices[i]) != nullptr;
      };
      for (int layer = 1; layer <= shape.layers; ++layer)
        for (std::int64_t i = 0; i < lists.sizes[layer - 1]; ++i) hits += hit(layer, i);
      if (step % 7 != 3) batches.push_back(random_batch(shape, lists, step, number, hit, random));
    }
    const auto finish = [&](const std::vector<HistoryBatch>& done, std::int64_t of) {
      for (const auto& batch : done) {
        note(space, cache, batch);
        note(map, batch);
      }
      if (of >= 0) cache.end(of);
    };
    finish(waiting, step - 1);
    waiting = std::move(batches);
    if (step % 5 == 4) {  // a pause: nothing is under way
      finish(waiting, step);
      waiting.clear();
      const auto state = state_of(space, cache, ++step);
      map.begin(step);
      expect_held(state, map);
      HistoryCacheOn<Space> other(shape);
      other.restore(space, step, state.records, state.rows.data());
      EXPECT_EQ(state_of(space, other, step), state);
      EXPECT_EQ(other.size(), std::ssize(map.held));
      cache = std::move(other);
      cache.begin(space, step);
    }
  }
  // What the last step wrote waits, and is in the state as such.
  const auto last = steps - 1 + (steps % 5 == 0);
  for (const auto& batch : waiting) {
    note(space, cache, batch);
    note(map, batch);
  }
  cache.end(last);
  const auto state = state_of(space, cache, last + 1);
  map.begin(last + 1);
  expect_held(state, map);
  EXPECT_EQ(hits > 0, shape.t_stale > 1);
  return state;
}

/// A checkpoint after every step: where the next step has begun it holds what it holds without, and
/// a cache that is read from it goes on as the one it is of.
template <class Space>
void expect_checkpoints_as_without_looking_ahead(const Space& space, const HistoryShape& shape,
                                                 std::uint64_t seed) {
  std::mt19937_64 random(seed);
  HistoryCacheOn<Space> one_by_one(shape), early(shape);
  MapOfHistory map(shape);
  std::int64_t begun = -1;
  for (std::int64_t step = 0; step < 25; ++step) {
    one_by_one.begin(space, step);
    map.begin(step);
    while (begun < step + 1) early.begin(space, ++begun);
    for (const std::int64_t number : {1, 0}) {
      const auto lists = random_lists(40, 3, random);
      const auto hit = [&](int layer, std::int64_t i) {
        return map.hit(layer, lists.vertices[i]) != nullptr;
      };
      const auto batch = random_batch(shape, lists, step, number, hit, random);
      note(space, one_by_one, batch);
      note(space, early, batch);
      note(map, batch);
    }
    one_by_one.end(step);
    early.end(step);
    const auto state = state_of(space, one_by_one, step + 1);
    EXPECT_EQ(state_of(space, early, step + 1), state) << "step " << step;
    EXPECT_EQ(state.count(HistoryRecord::Kind::kHeld), early.size());
    if (step % 6 == 5) {
      early = HistoryCacheOn<Space>(shape);
      early.restore(space, step + 1, state.records, state.rows.data());
      begun = step;
    }
  }
}

inline std::vector<HistoryShape> history_shapes() {
  std::vector<HistoryShape> shapes;
  for (const auto precision :
       {HistoryPrecision::kFloat32, HistoryPrecision::kFloat16, HistoryPrecision::kUint8})
    shapes.push_back({.layers = 2, .width = 7, .precision = precision, .t_stale = 5});
  for (const std::int64_t t_stale : {0, 1, 2, 4, 1000})
    for (const std::int64_t entries : {0, 30, 1500})
      shapes.push_back({.layers = 2, .width = 2, .t_stale = t_stale, .entries = entries});
  shapes.push_back({.layers = 2, .width = 3, .t_stale = 3});
  return shapes;
}

inline std::string name_of(const HistoryShape& shape) {
  return fmt::format("precision {} t_stale {} entries {}", static_cast<int>(shape.precision), shape.t_stale,
                     shape.entries);
}

}  // namespace espalier
