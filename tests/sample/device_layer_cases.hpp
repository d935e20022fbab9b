// A layer-wise sampler on a GPU against the CPU's: the same minibatches, bit for bit.
#pragma once

#include <algorithm>
#include <bit>
#include <functional>

#include "cuda_test.hpp"
#include "espalier/comm/device_communicator.hpp"
#include "espalier/sample/sampler.hpp"
#include "mpi_test.hpp"
#include "random_graph.hpp"
#include "sample/device_minibatches.hpp"

namespace espalier {

inline void expect_equal_blocks(const Block& block, const Block& expected) {
  EXPECT_EQ(block.rows, expected.rows);
  EXPECT_EQ(block.columns, expected.columns);
  EXPECT_EQ(block.indptr, expected.indptr);
  EXPECT_EQ(block.indices, expected.indices);
  ASSERT_EQ(block.values.size(), expected.values.size());
  for (std::size_t k = 0; k < block.values.size(); ++k)
    EXPECT_EQ(std::bit_cast<std::uint32_t>(block.values[k]), std::bit_cast<std::uint32_t>(expected.values[k]))
        << block.values[k] << " for " << expected.values[k];
}

inline void expect_equal(const HostMinibatch& minibatch, const Minibatch& oracle) {
  const auto expected = to_host(oracle);
  EXPECT_EQ(minibatch.number, expected.number);
  EXPECT_EQ(minibatch.vertices, expected.vertices);
  ASSERT_EQ(minibatch.blocks.size(), expected.blocks.size());
  for (std::size_t l = 0; l < expected.blocks.size(); ++l) {
    SCOPED_TRACE(testing::Message() << "batch " << expected.number << " block " << l);
    expect_equal_blocks(minibatch.blocks[l], expected.blocks[l]);
  }
}

inline void expect_equal_minibatches(const Cuda& gpu, std::span<const MinibatchOn<Cuda>> minibatches,
                                     std::span<const Minibatch> expected) {
  EXPECT_EQ(minibatches.size(), expected.size());
  if (minibatches.size() != expected.size()) return;
  for (std::size_t b = 0; b < expected.size(); ++b) expect_equal(to_host(gpu, minibatches[b]), expected[b]);
  EXPECT_EQ(sample_digests(gpu, minibatches), sample_digests(Cpu{1}, expected));
}

/// Batches of a graph of n > 12 vertices: the hub (0), the row without entries (1), that with a
/// self-loop only (2), many, few, and none.
struct AwkwardBatches {
  std::vector<std::vector<std::int64_t>> seeds;
  std::vector<SeedBatch> batches;

  explicit AwkwardBatches(std::int64_t n) {
    std::vector<std::int64_t> many;
    for (std::int64_t v = 3; v < n; v += 4) many.push_back(n + 2 - v);
    seeds = {{5, 4, 11}, {1}, {}, {2, 1}, many, {0}, {n - 1, 0, 7}};
    for (std::size_t b = 0; b < seeds.size(); ++b)
      batches.push_back({static_cast<std::int64_t>(3 * b + 2), seeds[b]});
  }
};

/// A call with all awkward batches; with `few`, calls with one, with two and with none too.
template <class Index>
void expect_same_samples(const Cuda& gpu, const std::string& kind, const DistCsr<Index>& m,
                         const SamplerShape& shape, bool few = false) {
  const DeviceGrid grid(gpu, *m.grid);
  const auto on_gpu = to_device(gpu, grid, m);
  const auto sampler = make_sampler(kind, m, shape);
  const auto device_sampler = make_sampler(gpu, kind, on_gpu, shape);
  EXPECT_EQ(device_sampler->schedules(), sampler->schedules());
  const AwkwardBatches all(m.rows());
  std::vector<std::span<const SeedBatch>> calls = {all.batches};
  if (few)
    calls.insert(calls.end(), {calls[0].subspan(1, 1), calls[0].subspan(1, 2), calls[0].subspan(0, 0)});
  for (const auto& call : calls)
    expect_equal_minibatches(gpu, device_sampler->sample(gpu, call, 9, 4), sampler->sample({1}, call, 9, 4));
}

enum class LayerMatrix { kAdjacency, kMean, kMeanWithSelf, kGcn };

template <class Index>
DistCsr<Index> layer_matrix(const Grid& grid, LayerMatrix which, std::int64_t n, bool weighted) {
  const auto a = distribute(grid, random_graph<Index>(n, 6, weighted, 17), Topology::kReplicated);
  switch (which) {
    case LayerMatrix::kAdjacency:
      return a;
    case LayerMatrix::kMean:
      return normalize_rows(a, false, weighted);
    case LayerMatrix::kMeanWithSelf:
      return normalize_rows(a, true, weighted);
    case LayerMatrix::kGcn:
      break;
  }
  return normalize_with_self_loops(a);
}

/// All modes over all matrices; fanouts of one, of more than there is, of all, and some
/// between, in turn.
template <class Index>
void expect_same_in_all_modes(const Cuda& gpu, const std::string& kind,
                              std::initializer_list<std::int64_t> sizes) {
  const Grid grid(test_world(), 1);
  const std::vector<std::vector<std::int64_t>> fanouts = {{5, 1}, {-1, 4}, {20, 7, 12}, {10000, 30}, {40}};
  std::size_t turn = 4;
  for (const auto n : sizes)
    for (const auto which :
         {LayerMatrix::kAdjacency, LayerMatrix::kMean, LayerMatrix::kMeanWithSelf, LayerMatrix::kGcn})
      for (const bool weighted : {false, true}) {
        const auto m = layer_matrix<Index>(grid, which, n, weighted);
        for (const auto mode : {SamplerMode::kPaper, SamplerMode::kReference, SamplerMode::kDebiased}) {
          const auto& fanout = fanouts[turn++ % fanouts.size()];
          SCOPED_TRACE(testing::Message() << n << " vertices, matrix " << static_cast<int>(which) << ", mode "
                                          << static_cast<int>(mode) << ", fanout " << fanout[0]
                                          << (weighted ? ", weighted" : ""));
          expect_same_samples<Index>(gpu, kind, m,
                                     {.fanout = fanout, .aggregation = Aggregation::kMatrix, .mode = mode},
                                     turn % 8 == 0);
        }
      }
}

}  // namespace espalier
