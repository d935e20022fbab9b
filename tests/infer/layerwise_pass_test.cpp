// ranks: 1 3 6
// long ranks: 2 4
// Laws: the rows of every layer are the network's formula over the dense matrix; their bits
// depend neither on the grid nor on chunks, nor on who else listens, nor on where hidden layers
// lie; a sink is given each row of the rank's share once, ascending; a pass that is given up ends
// on all ranks.
#include "espalier/infer/layerwise_pass.hpp"

#include <gtest/gtest.h>

#include "mpi_test.hpp"
#include "train/dense_network.hpp"
#include "train/small_job.hpp"

namespace espalier {
namespace {

// Ranks of one column need unequal numbers of 64-row chunks.
constexpr std::int64_t kVertices = 513;

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

// Every layer's rows, each by a sink of its own.
Found all_layers(const Grid& grid, const SmallProblem& problem, const Network<float>& network,
                 PassMemory memory, Topology topology) {
  const auto kind = network.shape().kind;
  const SmallJob job(grid, problem, kind, {1}, 1, topology);
  const LayerwisePass pass(grid, *job.whole_rows, job.input.table(0).ownership(), EntriesOfRows(job.a),
                           std::move(memory));
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

TEST(LayerwisePass, EveryLayerIsTheDenseFormulaWithTheSameBitsOnEveryGridInAnyChunks) {
  const auto seed = test_seed(21);
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  auto problem = small_problem(kVertices, 7, 4, seed);
  const auto folder = test_folder("spilled-layers");
  for (const auto& [kind, layers, normalize] :
       {std::tuple{"sage", 3, "batch"}, {"gcn", 2, "none"}, {"sage", 1, "none"}}) {
    SCOPED_TRACE(fmt::format("{} {} {}", kind, layers, normalize));
    const auto network = network_of({kind, layers, 7, 9, 4, 0.5, 0.5, normalize}, random);
    const auto expected = dense_layers(problem, network);
    std::optional<Found> first;
    for (const int c : divisors(test_world().size()))
      for (const auto topology : {Topology::kPartitioned, Topology::kReplicated})
        for (const auto& memory : {PassMemory(1), PassMemory(1, folder), PassMemory(1, folder, 1 << 13),
                                   PassMemory(std::int64_t{1} << 30)}) {
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
  const auto problem = small_problem(kVertices, 7, 4, 5);
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

}  // namespace
}  // namespace espalier
