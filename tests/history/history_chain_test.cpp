// ranks: 1 2 3 4
// The nouns of history put together as a trainer does: find, prune, read, compute, choose, write.
// Law: where weights stand still and rows have all their neighbours, a cached row is what would be
// computed anew, so history changes no output, in any scope, on any grid, while it leaves out most
// of the rows; with p_grad = 0 or t_stale = 0 it leaves out none.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "espalier/history/grid_history.hpp"
#include "espalier/history/history_policy.hpp"
#include "espalier/sample/sampler.hpp"
#include "mpi_test.hpp"
#include "random_graph.hpp"

namespace espalier {
namespace {

constexpr std::int64_t kChainVertices = 300, kChainWidth = 2, kSteps = 14, kBatches = 4;
constexpr int kLayers = 3;
// Of one rank, from which other grids must not differ.
constexpr std::int64_t kLaneInputs = 7528, kLaneRows = 4706, kSharedInputs = 4551, kSharedRows = 3422;

// H[l] of one row, of integers below 251: exact in float32.
float combined(int layer, std::int64_t j, float own, std::span<const float> sources) {
  auto sum = static_cast<std::int64_t>(3 * own) + layer;
  for (const float h : sources) sum += (j + 1) * static_cast<std::int64_t>(h);
  return static_cast<float>(sum % 251);
}

float input(std::int64_t vertex, std::int64_t j) {
  return static_cast<float>(mix(static_cast<std::uint64_t>(2 * vertex + j)) % 251);
}

// N[l] of a pruned minibatch, of the rows D[l-1].
Matrix<float> layer_of_block(int layer, const BlockView<>& block, const Matrix<float>& below) {
  Matrix<float> h(block.rows, kChainWidth);
  for (std::int64_t row = 0; row < block.rows; ++row)
    for (std::int64_t j = 0; j < kChainWidth; ++j) {
      std::vector<float> sources;
      for (const auto column : block.row_indices(row)) sources.push_back(below(column, j));
      h(row, j) = combined(layer, j, below(row, j), sources);
    }
  return h;
}

// D[l] of N[l] and C[l].
Matrix<float> placed(const PrunedLayer& layer, const Matrix<float>& computed, const Matrix<float>& cached) {
  Matrix<float> h(layer.needed(), kChainWidth);
  for (std::int64_t c = 0; c < h.rows; ++c) {
    const auto place = layer.place[c];
    std::copy_n(place < 0 ? cached.row(~place) : computed.row(place), kChainWidth, h.row(c));
  }
  return h;
}

struct Batch {
  std::int64_t number;
  Minibatch minibatch;
  HistoryFoundOn<Cpu> found;
  PrunedMinibatchOn<Cpu> pruned;
  std::vector<Matrix<float>> cached, computed;  // [kLayers] of layer l at l
};

Matrix<float> outputs_of(Batch& batch) {
  const auto& pruned = batch.pruned;
  Matrix<float> h(std::ssize(pruned.inputs()), kChainWidth);
  for (std::int64_t k = 0; k < h.rows; ++k)
    for (std::int64_t j = 0; j < kChainWidth; ++j) h(k, j) = input(pruned.inputs()[k], j);
  batch.computed.resize(kLayers);
  for (int l = 1; l < kLayers; ++l) {
    batch.computed[l] = layer_of_block(l, pruned.blocks[l - 1], h);
    h = placed(pruned.layers[l], batch.computed[l], batch.cached[l]);
  }
  return layer_of_block(kLayers, pruned.blocks[kLayers - 1], h);
}

Minibatch sample(Sampler& sampler, std::int64_t number) {
  std::vector<std::int64_t> seeds;
  for (std::int64_t k = 0; k < 5; ++k) seeds.push_back((number * 37 + k * 61) % kChainVertices);
  const SeedBatch batch = {number, seeds};
  return std::move(sampler.sample({1}, {&batch, 1}, 3, 0)[0]);
}

// A gradient that depends on who it is of, when, and where.
Matrix<float> gradient_of(const PrunedLayer& layer, int l, std::int64_t batch) {
  Matrix<float> dh(layer.needed(), kChainWidth);
  for (std::int64_t c = 0; c < dh.rows; ++c) {
    const auto place = layer.place[c];
    const auto v = place < 0 ? layer.cached.vertices[~place] : layer.computed.vertices[place];
    for (std::int64_t j = 0; j < kChainWidth; ++j)
      dh(c, j) =
          static_cast<float>(mix(static_cast<std::uint64_t>(v + 1000 * l + 100000 * batch + j)) % 1009);
  }
  return dh;
}

void write_history(auto& cache, std::int64_t step, const Batch& batch, double p_grad) {
  for (int l = 1; l < kLayers; ++l) {
    const auto& layer = batch.pruned.layers[l];
    Buffer<HistoryCandidate> candidates;
    score_rows(Cpu{1}, layer, gradient_of(layer, l, batch.number), candidates);
    const auto choice = choose_history(candidates, stable_share(p_grad));
    std::vector<HistoryWrite> writes;
    std::vector<std::int64_t> evictions;
    for (const auto& row : choice.admitted) writes.push_back({row.vertex, row.score, row.place});
    for (const auto& row : choice.evicted) evictions.push_back(row.vertex);
    cache.write(Cpu{1}, step, batch.number, l, writes, batch.computed[l]);
    cache.evict(step, l, evictions);
  }
}

/// A cache for each of a step's batches: those of this rank.
struct Lanes {
  std::vector<HistoryCache> lanes;

  Lanes(const Grid&, const HistoryShape& shape) {
    for (std::int64_t k = 0; k < kBatches; ++k) lanes.emplace_back(shape);
  }
  void begin(std::int64_t step) {
    for (auto& lane : lanes) lane.begin({}, step);
  }
  void find_and_read(std::vector<Batch>& batches) {
    for (auto& batch : batches) {
      const auto& lane = lanes[batch.number % kBatches];
      batch.found = lane.find({}, batch.minibatch);
      batch.pruned = prune(Cpu{1}, batch.minibatch, batch.found.spans());
      for (int l = 1; l < kLayers; ++l)
        lane.read({}, batch.found, l, batch.pruned.layers[l].cached.positions, batch.cached[l]);
    }
  }
  void write(std::int64_t step, const Batch& batch, double p_grad) {
    write_history(lanes[batch.number % kBatches], step, batch, p_grad);
  }
  void end(std::int64_t step) {
    for (auto& lane : lanes) lane.end(step);
  }
};

struct Shared {
  GridHistory cache;

  Shared(const Grid& grid, const HistoryShape& shape) : cache(grid, shape) {}
  void begin(std::int64_t step) { cache.begin({}, step); }
  void find_and_read(std::vector<Batch>& batches) {
    std::vector<Minibatch> minibatches;
    for (const auto& batch : batches) minibatches.push_back(batch.minibatch);
    std::vector<HistoryFoundOn<Cpu>> found;
    cache.find({}, minibatches, found, "history/find");
    std::vector<HistoryReadOn<Cpu>> reads;
    for (std::size_t b = 0; b < batches.size(); ++b) {
      batches[b].pruned = prune(Cpu{1}, minibatches[b], found[b].spans());
      for (int l = 1; l < kLayers; ++l)
        reads.push_back({l, batches[b].pruned.layers[l].cached.vertices, &batches[b].cached[l]});
    }
    cache.read({}, reads, "history/read");
  }
  void write(std::int64_t step, const Batch& batch, double p_grad) {
    write_history(cache, step, batch, p_grad);
  }
  void end(std::int64_t step) { cache.end({}, step, "history/write"); }
};

struct RowCounts {
  std::int64_t inputs = 0, all_inputs = 0, computed = 0;
};

// Steps of all ranks; what comes of the inputs and rows of all batches.
template <class Scope>
RowCounts expect_same_outputs(const HistoryShape& shape, double p_grad) {
  const Grid grid(test_world(), 1);
  const Grid copies(test_world(), test_world().size());  // each rank has all rows
  const auto a =
      distribute(copies, random_graph<std::int32_t>(kChainVertices, 3, false, 17), Topology::kReplicated);
  const auto sampler = make_sampler("graphsage", a, {.fanout = {-1, -1, -1}});
  Scope scope(grid, shape);
  RowCounts rows;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    SCOPED_TRACE(fmt::format("step {}", step));
    std::vector<Batch> batches;
    for (std::int64_t k = 0; k < kBatches; ++k) {
      if (k % test_world().size() != test_world().rank()) continue;
      const auto number = step * kBatches + k;
      batches.push_back({number, sample(*sampler, number), {}, {}, std::vector<Matrix<float>>(kLayers), {}});
    }
    scope.begin(step);
    scope.find_and_read(batches);
    for (auto& batch : batches) {
      const auto outputs = outputs_of(batch);
      Batch whole = {batch.number,
                     batch.minibatch,
                     {},
                     prune(Cpu{1}, batch.minibatch, {}),
                     std::vector<Matrix<float>>(kLayers),
                     {}};
      EXPECT_EQ(outputs.data, outputs_of(whole).data);
      rows.inputs += batch.pruned.after.inputs;
      rows.all_inputs += batch.pruned.before.inputs;
      rows.computed += batch.pruned.after.rows;
      scope.write(step, batch, p_grad);
    }
    scope.end(step);
  }
  for (auto* const sum : {&rows.inputs, &rows.all_inputs, &rows.computed})
    *sum = test_world().all_reduce(*sum, Reduction::kSum, "test");
  return rows;
}

HistoryShape shape_of(std::int64_t t_stale) {
  return {.layers = kLayers - 1, .width = kChainWidth, .t_stale = t_stale};
}

TEST(HistoryChain, StandingWeightsGiveTheOutputsOfNoHistory) {
  const auto lanes = expect_same_outputs<Lanes>(shape_of(8), 0.9);
  const auto shared = expect_same_outputs<Shared>(shape_of(8), 0.9);
  EXPECT_LT(lanes.inputs, lanes.all_inputs * 8 / 10);
  EXPECT_LT(shared.inputs, lanes.inputs) << "one cache for all is hit more often";
}

// What every grid must have: the numbers of one rank.
TEST(HistoryChain, HitsAreTheSameOnEveryGrid) {
  const auto lanes = expect_same_outputs<Lanes>(shape_of(5), 0.7);
  const auto shared = expect_same_outputs<Shared>(shape_of(5), 0.7);
  EXPECT_EQ(lanes.inputs, kLaneInputs);
  EXPECT_EQ(lanes.computed, kLaneRows);
  EXPECT_EQ(shared.inputs, kSharedInputs);
  EXPECT_EQ(shared.computed, kSharedRows);
}

TEST(HistoryChain, NothingAdmittedOrNothingYoungEnoughLeavesAllRows) {
  for (const auto& [t_stale, p_grad] : {std::pair{8, 0.0}, {0, 0.9}, {1, 0.9}}) {
    const auto shared = expect_same_outputs<Shared>(shape_of(t_stale), p_grad);
    EXPECT_EQ(shared.inputs, shared.all_inputs);
    const auto lanes = expect_same_outputs<Lanes>(shape_of(t_stale), p_grad);
    EXPECT_EQ(lanes.inputs, lanes.all_inputs);
  }
}

}  // namespace
}  // namespace espalier
