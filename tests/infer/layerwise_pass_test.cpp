// ranks: 1 3 6
// long ranks: 2 4
// Laws: the rows of every layer are the network's formula over the dense matrix; their bits depend
// neither on the grid nor on chunks, nor on who else listens, nor on where hidden layers lie; a
// sink is given each row of the rank's share once, ascending; a pass that is given up ends on all
// ranks, and so does one that gave a sink a number that is not finite. Of a pass that draws: each
// vertex has as many neighbours as its fanout says, others in each layer and by each seed, all of
// them as often. (That a draw is the same on every grid and in any chunks, and that of whole rows
// the exact one: tests/app/infer_sampled_test.py.)
#include "espalier/infer/layerwise_pass.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "mpi_test.hpp"
#include "train/dense_network.hpp"
#include "train/small_job.hpp"

namespace espalier {
namespace {

// Ranks of one column need unequal numbers of 64-row chunks.
constexpr std::int64_t kPassVertices = 613;

// Keeps what it is given, and how.
struct Listener final : RowSink {
  std::vector<std::int64_t> firsts;
  std::vector<Matrix<float>> chunks;
  void take(const Cpu&, std::int64_t first, Matrix<float>& rows) override {
    firsts.push_back(first);
    std::swap(chunks.emplace_back(), rows);  // the pass must do without that memory
  }
};

// All rows of a layer on every rank, from every rank's share; each row must have come once, in
// order, to one of them.
Matrix<float> all_rows(const LayerwisePass& pass, const Listener& listener, std::int64_t width) {
  const auto& shares = pass.shares();
  auto rows = filled_matrix(shares.rows(), width, 0.0f);
  Buffer<std::int64_t> given(shares.rows(), 0);
  std::int64_t next = 0;
  for (std::size_t k = 0; k < listener.chunks.size(); ++k) {
    const auto& chunk = listener.chunks[k];
    EXPECT_EQ(listener.firsts[k], next);
    EXPECT_EQ(chunk.columns, width);
    for (std::int64_t i = 0; i < chunk.rows; ++i) {
      const auto vertex = shares.vertex(test_world().rank(), next++);
      std::copy_n(chunk.row(i), width, rows.row(vertex));
      ++given[vertex];
    }
  }
  EXPECT_EQ(next, pass.rows());
  test_world().all_reduce(std::span<std::int64_t>(given), Reduction::kSum, "test");
  EXPECT_TRUE(std::ranges::all_of(given, [](std::int64_t times) { return times == 1; }));
  // One rank has each.
  test_world().all_reduce(std::span<float>(rows.data), Reduction::kSum, "test");
  return rows;
}

struct Found {
  std::vector<Matrix<float>> layers;
  std::size_t chunks = 0;  // of layer 1 on this rank
};

// What a pass draws; no fanout: all neighbours.
struct Drawing {
  std::vector<std::int64_t> fanout;
  std::uint64_t seed = 0;
};

// Every layer's rows, each by a sink of its own.
Found all_layers(const Grid& grid, const SmallProblem& problem, const Network<float>& network,
                 PassMemory memory, Topology topology, const Drawing& drawing = {}) {
  const auto kind = network.shape().kind;
  const bool draws = !drawing.fanout.empty();
  const SmallJob job(grid, problem, kind, draws ? drawing.fanout : std::vector<std::int64_t>{1}, 1, topology);
  LayerwisePass pass(grid, draws ? *job.sampler : *job.whole_rows, job.input.table(0).ownership(),
                     EntriesOfRows(job.a), std::move(memory));
  if (draws) pass.draw_by(drawing.seed);
  std::vector<Listener> listeners(network.shape().layers);
  std::vector<RowSink*> sinks;
  for (auto& listener : listeners) sinks.push_back(&listener);
  EXPECT_TRUE(pass.run(Cpu{1}, network, InputStores(small_features(grid, problem)), sinks, {}));
  Found found{{}, listeners[0].chunks.size()};
  for (int layer = 1; layer <= network.shape().layers; ++layer)
    found.layers.push_back(all_rows(pass, listeners[layer - 1], network.output_width(layer)));

  // The last alone: other layers may be nobody's.
  Listener last;
  std::ranges::fill(sinks, nullptr);
  sinks.back() = &last;
  EXPECT_TRUE(pass.run(Cpu{1}, network, job.input, sinks, {}));
  EXPECT_EQ(all_rows(pass, last, network.shape().classes).data, found.layers.back().data);
  return found;
}

void expect_near(const Matrix<float>& found, const Matrix<double>& expected) {
  ASSERT_EQ(found.data.size(), expected.data.size());
  for (std::size_t k = 0; k < found.data.size(); ++k)
    EXPECT_NEAR(found.data[k], expected.data[k], 1e-4 * (1 + std::abs(expected.data[k]))) << k;
}

// On c = 1 every topology with every memory, on other grids one in `stride` of them.
void expect_dense_layers(int stride) {
  const auto seed = test_seed(21);
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  auto problem = small_problem(kPassVertices, 7, 4, seed);
  const auto folder = test_folder("spilled-layers");
  for (const auto& [kind, layers, normalize] :
       {std::tuple{"sage", 3, "batch"}, {"gcn", 2, "none"}, {"sage", 1, "none"}}) {
    SCOPED_TRACE(fmt::format("{} {} {}", kind, layers, normalize));
    const auto network = network_of({kind, layers, 7, 9, 4, 0.5, 0.5, normalize}, random);
    const auto expected = dense_layers(problem, network);
    std::optional<Found> first;
    int turn = layers;  // others for each network
    for (const int c : divisors(test_world().size()))
      for (const auto topology : {Topology::kPartitioned, Topology::kReplicated})
        for (const auto& memory : {PassMemory(1), PassMemory(1, folder), PassMemory(1, folder, 1 << 13),
                                   PassMemory(std::int64_t{1} << 30)}) {
          if (c > 1 && turn++ % stride != 0) continue;
          problem.owned = memory.chunk_bytes == 1 ? Owned::kAtRandom : Owned::kInRanges;
          SCOPED_TRACE(fmt::format("c {} chunk_bytes {} {} {}", c, memory.chunk_bytes, memory.spill,
                                   memory.cache_bytes));
          const Grid grid(test_world(), c);
          auto found = all_layers(grid, problem, network, memory, topology);
          EXPECT_EQ(found.chunks > 1, memory.chunk_bytes == 1);
          if (!first) first = std::move(found);
          for (int layer = 0; layer < layers; ++layer) {
            if (c == 1) expect_near(first->layers[layer], expected[layer]);
            if (!found.layers.empty()) EXPECT_EQ(found.layers[layer].data, first->layers[layer].data);
          }
        }
  }
}

TEST(LayerwisePass, EveryLayerIsTheDenseFormulaWithTheSameBitsOnEveryGridInAnyChunks) {
  expect_dense_layers(5);
}

TEST(LayerwisePass, LongEveryLayerOnEveryGridOfEveryTopologyAndMemory) {
  expect_dense_layers(1);
}

// A network whose layers give the mean of what they read: by one-hot features its first layer tells
// what was drawn.
Network<float> means(std::int64_t width, int layers) {
  Network<float> network({"sage", layers, width, width, width, 0, 0, "none"}, 1);
  for (auto& parameter : network.parameters()) {
    std::ranges::fill(parameter.value.data, 0.0f);
    if (parameter.name.ends_with(".neighbour"))
      for (std::int64_t k = 0; k < width; ++k) parameter.value(k, k) = 1;
  }
  return network;
}

SmallProblem one_hot_problem(std::int64_t vertices, std::uint64_t seed) {
  auto problem = small_problem(vertices, vertices, vertices, seed);
  std::ranges::fill(problem.features.data, 0.0f);
  for (std::int64_t v = 0; v < vertices; ++v) problem.features(v, v) = 1;
  return problem;
}

std::vector<std::int64_t> picks_of(const Matrix<float>& means, std::int64_t vertex) {
  std::vector<std::int64_t> picks;
  for (std::int64_t u = 0; u < means.columns; ++u)
    if (means(vertex, u) != 0) picks.push_back(u);
  for (const auto u : picks) EXPECT_NEAR(means(vertex, u), 1.0 / static_cast<double>(picks.size()), 1e-6);
  return picks;
}

TEST(LayerwisePass, DrawsSoManyNeighboursEachAsOften) {
  constexpr std::int64_t kSmall = 31, kFanout = 2;
  const std::int64_t seeds = test_world().size() == 1 ? 150 : 2;  // draws are the same on all grids
  const auto seed = test_seed(5);
  SCOPED_TRACE(seed);
  const auto problem = one_hot_problem(kSmall, seed);
  const auto& graph = problem.graph;
  const auto network = means(kSmall, 1);
  auto often = filled_matrix(kSmall, kSmall, 0.0);
  const Grid grid(test_world(), 1);
  for (std::uint64_t s = 0; s < static_cast<std::uint64_t>(seeds); ++s) {
    const auto found =
        all_layers(grid, problem, network, PassMemory(1), Topology::kPartitioned, {{kFanout}, seed + s});
    for (std::int64_t v = 0; v < kSmall; ++v) {
      const auto picks = picks_of(found.layers[0], v);
      EXPECT_EQ(std::ssize(picks), std::min(kFanout, graph.row_size(v)));
      for (const auto u : picks) ++often(v, u);
    }
  }
  for (std::int64_t v = 0; v < kSmall; ++v) {
    double all = 0;
    for (auto k = graph.row_begin(v); k < graph.row_end(v); ++k) {
      const auto times = often(v, graph.indices[static_cast<std::size_t>(k)]);
      const double share =
          std::min(1.0, static_cast<double>(kFanout) / static_cast<double>(graph.row_size(v)));
      EXPECT_NEAR(times, static_cast<double>(seeds) * share,
                  1e-9 + 5.5 * std::sqrt(static_cast<double>(seeds) * share * (1 - share)));
      all += times;
    }
    // And no others.
    EXPECT_EQ(all, static_cast<double>(seeds * std::min(kFanout, graph.row_size(v))));
  }
}

// Of two layers of means the second's picks are those whose first layer gives what was found.
TEST(LayerwisePass, DrawsAnewInEachLayer) {
  constexpr std::int64_t kSmall = 67;
  const auto problem = one_hot_problem(kSmall, 11);
  const auto& graph = problem.graph;
  const auto found = all_layers(Grid(test_world(), 1), problem, means(kSmall, 2), PassMemory(1),
                                Topology::kPartitioned, {{1, 1}, 3});
  std::int64_t drawn = 0, same = 0;
  for (std::int64_t v = 0; v < kSmall; ++v) {
    const auto first = picks_of(found.layers[0], v), second = picks_of(found.layers[1], v);
    if (first.empty()) continue;
    bool explained = second.empty(), by_first = second == picks_of(found.layers[0], first[0]);
    for (auto k = graph.row_begin(v); k < graph.row_end(v); ++k)
      explained |= second == picks_of(found.layers[0], graph.indices[static_cast<std::size_t>(k)]);
    EXPECT_TRUE(explained) << v;
    if (graph.row_size(v) == 1) continue;
    ++drawn;
    same += by_first;
  }
  EXPECT_GT(drawn, 20);
  EXPECT_LT(same, 0.8 * static_cast<double>(drawn)) << "the picks of layer 1 again";
}

TEST(LayerwisePass, MoreRanksThanRowsAreFine) {
  const auto problem = small_problem(3, 2, 2, 1);
  std::mt19937_64 random(3);
  const auto network = network_of({"sage", 2, 2, 3, 2, 0, 0, "none"}, random);
  const auto expected = dense_layers(problem, network);
  for (const int c : divisors(test_world().size())) {
    const auto found = all_layers(Grid(test_world(), c), problem, network, 1, Topology::kPartitioned);
    for (std::size_t layer = 0; layer < expected.size(); ++layer)
      expect_near(found.layers[layer], expected[layer]);
  }
}

TEST(LayerwisePass, GivenUpItEndsBeforeTheNextChunk) {
  const auto problem = small_problem(kPassVertices, 7, 4, 5);
  std::mt19937_64 random(3);
  const auto network = network_of({"sage", 2, 7, 3, 4, 0, 0, "none"}, random);
  const Grid grid(test_world(), 1);
  const SmallJob job(grid, problem, "sage", {1}, 1);
  const LayerwisePass pass(grid, *job.whole_rows, job.input.table(0).ownership(), EntriesOfRows(job.a), 1);
  Listener listener, last;
  int asked = 0;
  EXPECT_FALSE(pass.run(Cpu{1}, network, job.input, std::vector<RowSink*>{&listener, &last},
                        [&] { return ++asked < 2; }));
  EXPECT_EQ(asked, 2);
  EXPECT_LE(listener.chunks.size(), 2u);
  EXPECT_TRUE(last.chunks.empty());
}

// By a network of means a number goes to those who have its vertex among their neighbours.
TEST(LayerwisePass, WhatIsNotFiniteIsGivenToNobodyUnsaid) {
  constexpr std::int64_t kSmall = 140, kWidth = 3;
  const auto plain = small_problem(kSmall, kWidth, kWidth, 9);
  const auto network = means(kWidth, 2);
  const auto heard = [&](std::int64_t u, std::int64_t v) {
    const auto row =
        std::span(plain.graph.indices).subspan(plain.graph.row_begin(v), plain.graph.row_size(v));
    return std::ranges::find(row, static_cast<std::int32_t>(u)) != row.end();
  };
  int refused = 0, passed = 0;
  for (const int c : divisors(test_world().size()))
    for (std::int64_t u = c; u < kSmall; u += 23) {
      SCOPED_TRACE(fmt::format("c {} vertex {}", c, u));
      auto problem = plain;
      problem.features(u, 0) = u % 2 == 0 ? INFINITY : NAN;
      const Grid grid(test_world(), c);
      const SmallJob job(grid, problem, "sage", {1}, 1);
      const LayerwisePass pass(grid, *job.whole_rows, job.input.table(0).ownership(), EntriesOfRows(job.a),
                               1);
      Listener first, last;
      bool is_heard = false;
      for (std::int64_t v = 0; v < kSmall; ++v) is_heard |= heard(u, v);
      try {
        pass.run(Cpu{1}, network, job.input, std::vector<RowSink*>{&first, &last}, {});
        EXPECT_FALSE(is_heard);
        ++passed;
      } catch (const UserError& error) {  // on every rank
        EXPECT_TRUE(is_heard);
        EXPECT_EQ(error.code(), ExitCode::kDiverged);
        EXPECT_TRUE(last.chunks.empty()) << "said when the first layer is done";
        long vertex = -1, column = -1;
        EXPECT_EQ(std::sscanf(error.what(), "layer 1 gives vertex %ld %*s in column %ld", &vertex, &column),
                  2);
        EXPECT_TRUE(heard(u, vertex)) << error.what();
        EXPECT_EQ(column, 0);
        ++refused;
      }
    }
  EXPECT_GT(refused, 0);
  EXPECT_GT(refused + passed, 5);
}

}  // namespace
}  // namespace espalier
