// Steps of a cache of history over a grid, for the tests of both spaces: every rank knows all
// batches and what a map makes of them, and hands over its own.
#pragma once

#include "espalier/history/grid_history.hpp"
#include "history/history_cases.hpp"
#include "mpi_test.hpp"

namespace espalier {

/// Batches of a step by their numbers, dealt to ranks; some ranks have several, some none.
inline int rank_of_batch(std::int64_t number) {
  return static_cast<int>(number * 5 / 3 % test_world().size());
}

/// My batches of one step: their hits and rows against the map.
template <class Space>
void expect_found(const Space& space, const GridHistoryOn<Space>& cache, const MapOfHistory& map,
                  const std::vector<HistoryLists>& lists, std::mt19937_64& random) {
  const auto& shape = cache.shape();
  std::vector<Array<Space, std::int64_t>> vertices;
  std::vector<MinibatchOn<Space>> minibatches;
  for (const auto& of : lists) vertices.push_back(copy_to(space, std::span<const std::int64_t>(of.vertices)));
  for (std::size_t b = 0; b < lists.size(); ++b)
    minibatches.push_back(minibatch_of<Space>(lists[b], vertices[b]));
  std::vector<HistoryFoundOn<Space>> found;
  cache.find(space, minibatches, found, "find");
  EXPECT_EQ(found.size(), lists.size());
  std::vector<std::vector<std::int64_t>> wanted;
  std::vector<int> layer_of_list;
  for (std::size_t b = 0; b < lists.size(); ++b)
    for (int layer = 1; layer <= shape.layers; ++layer) {
      const auto flags = copy_from(space, found[b].hits[layer - 1]);
      EXPECT_EQ(std::ssize(flags), lists[b].sizes[layer - 1]);
      wanted.emplace_back();
      layer_of_list.push_back(layer);
      for (std::int64_t i = 0; i < std::ssize(flags); ++i) {
        const auto v = lists[b].vertices[i];
        const bool expected = map.hit(layer, v) != nullptr;
        EXPECT_EQ(flags[i] != 0, expected) << "layer " << layer << " vertex " << v;
        if (expected && random() % 3 > 0) wanted.back().push_back(v);
      }
    }
  std::vector<Matrix<float, Space>> rows(wanted.size());
  std::vector<Array<Space, std::int64_t>> arrays;
  std::vector<HistoryReadOn<Space>> reads;
  for (const auto& list : wanted) arrays.push_back(copy_to(space, std::span<const std::int64_t>(list)));
  for (std::size_t m = 0; m < wanted.size(); ++m)
    reads.push_back({layer_of_list[m], {arrays[m].data(), arrays[m].size()}, &rows[m]});
  cache.read(space, reads, "read");
  for (std::size_t m = 0; m < wanted.size(); ++m) {
    const auto read = copy_from(space, rows[m].data);
    EXPECT_EQ(rows[m].rows, std::ssize(wanted[m]));
    for (std::size_t k = 0; k < wanted[m].size(); ++k)
      expect_kept(shape.precision, map.hit(layer_of_list[m], wanted[m][k])->values,
                  read.data() + static_cast<std::int64_t>(k) * shape.width);
  }
}

/// Steps, with those of one cache for all beside them. Returns what this rank holds at the end.
template <class Space>
HistoryState expect_grid_as_a_map(const Space& space, const GridOn<Space>& grid, const HistoryShape& shape,
                                  std::int64_t vertices, std::int64_t steps, std::uint64_t seed) {
  std::mt19937_64 random(seed), own_random(seed + static_cast<std::uint64_t>(test_world().rank()));
  GridHistoryOn<Space> cache(grid, shape);
  HistoryCache one(shape);
  MapOfHistory map(shape);
  std::vector<HistoryBatch> waiting;
  const auto finish = [&](const std::vector<HistoryBatch>& done, std::int64_t step) {
    if (step < 0) return;
    for (const auto& batch : done) {
      if (rank_of_batch(batch.number) == test_world().rank()) note(space, cache, batch);
      note(Cpu{1}, one, batch);
      note(map, batch);
    }
    cache.end(space, step, "end");
    one.end(step);
  };
  for (std::int64_t step = 0; step < steps; ++step) {
    SCOPED_TRACE(fmt::format("step {}", step));
    cache.begin(space, step);
    one.begin({}, step);
    map.begin(step);
    std::vector<HistoryBatch> batches;
    std::vector<HistoryLists> mine;
    for (std::int64_t k = 0; k < 5; ++k) {
      const auto number = 5 * step + 4 - k;  // not ascending
      const auto lists = random_lists(vertices, 3, random);
      const auto hit = [&](int layer, std::int64_t i) {
        return map.hit(layer, lists.vertices[i]) != nullptr;
      };
      if (step % 4 != 3) batches.push_back(random_batch(shape, lists, step, number, hit, random));
      if (rank_of_batch(number) == test_world().rank()) mine.push_back(lists);
    }
    expect_found(space, cache, map, mine, own_random);
    finish(waiting, step - 1);
    waiting = std::move(batches);
  }
  finish(waiting, steps - 1);

  // My part of what one cache holds, also where it is read from the whole.
  const auto whole = state_of({}, one, steps);
  map.begin(steps);
  expect_held(whole, map);
  const auto state = state_of(space, cache.part(), steps);
  EXPECT_EQ(state, whole.part([&](std::int64_t v) { return cache.rank_of(v) == test_world().rank(); }));
  GridHistoryOn<Space> restored(grid, shape);
  restored.restore(space, steps, state.records, state.rows.data());
  EXPECT_EQ(state_of(space, restored.part(), steps), state);
  EXPECT_EQ(test_world().all_reduce(cache.part().size(), Reduction::kSum, "test"), one.size());
  return state;
}

inline std::vector<HistoryShape> grid_history_shapes() {
  std::vector<HistoryShape> shapes;
  for (const auto precision :
       {HistoryPrecision::kFloat32, HistoryPrecision::kFloat16, HistoryPrecision::kUint8})
    for (const std::int64_t entries : {0, 1100})
      shapes.push_back({.layers = 2, .width = 7, .precision = precision, .t_stale = 6, .entries = entries});
  shapes.push_back({.layers = 2, .width = 3, .t_stale = 4});
  shapes.push_back({.layers = 2, .width = 1, .t_stale = 50, .entries = 40});
  shapes.push_back({.layers = 2, .width = 1, .t_stale = 0});
  return shapes;
}

}  // namespace espalier
