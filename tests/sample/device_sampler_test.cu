// Laws: on a GPU the node-wise samplers make the minibatches that they make on the CPU, entry
// by entry and value bits included, for any number of batches at once; digests of copies are
// the CPU's.
// ranks: 1 2
#include <algorithm>
#include <numeric>
#include <random>

#include "espalier/comm/device_communicator.hpp"
#include "mpi_test.hpp"
#include "sample/device_layer_cases.hpp"
#include "sample/graphsage_cases.hpp"

namespace espalier {
namespace {

// Batches of distinct seeds: none, one, some, many; numbers with gaps.
struct Seeds {
  std::vector<std::vector<std::int64_t>> lists;
  std::vector<SeedBatch> batches;

  Seeds(std::int64_t nodes, const std::vector<std::int64_t>& sizes, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<std::int64_t> all(static_cast<std::size_t>(nodes));
    std::iota(all.begin(), all.end(), std::int64_t{0});
    for (const auto size : sizes) {
      std::shuffle(all.begin(), all.end(), random);
      lists.emplace_back(all.begin(), all.begin() + std::min(size, nodes));
    }
    for (std::size_t b = 0; b < lists.size(); ++b)
      batches.push_back({static_cast<std::int64_t>(3 * b + 1), lists[b]});
  }
};

class DeviceSamplers : public CudaTest {
 protected:
  template <class Index>
  void expect_as_on_cpu(const char* kind, const DistCsr<Index>& a, const SamplerShape& shape,
                        std::span<const SeedBatch> batches, Placement placement = Placement::kDevice) {
    const auto oracle = make_sampler(kind, a, shape)->sample({1}, batches, 7, 2);
    const DeviceGrid device_grid(gpu(), *a.grid);
    const auto copy = to_device(gpu(), device_grid, a, placement);
    const auto minibatches = make_sampler(gpu(), kind, copy, shape)->sample(gpu(), batches, 7, 2);
    expect_equal_minibatches(gpu(), minibatches, oracle);
    EXPECT_GT(minibatches.empty() ? 1 : minibatches[0].blocks.size(), 0u);
  }

  template <class Index>
  void try_graph(const Grid& grid, std::int64_t nodes, std::int64_t degree,
                 std::span<const std::int64_t> fanout) {
    const Seeds seeds(nodes, {0, 1, 5, nodes / 2, 1}, 3);
    for (const bool weights : {false, true}) {
      const auto plain =
          distribute(grid, random_graph<Index>(nodes, degree, weights, 5), Topology::kReplicated);
      const auto normalised = normalize_with_self_loops(plain);
      for (const auto s : fanout)
        for (const char* kind : {"graphsage", "labor"})
          for (const bool weighted : {false, true}) {
            if (weighted && (!weights || kind[0] == 'l')) continue;
            SCOPED_TRACE(testing::Message() << kind << " fanout " << s << " weights " << weights << weighted);
            for (const auto draw : {DrawLaw::kIts, DrawLaw::kRace}) {
              if (draw == DrawLaw::kRace && !weighted) continue;
              SamplerShape shape = {.fanout = {s, 3}, .weighted = weighted, .draw = draw};
              expect_as_on_cpu(kind, plain, shape, seeds.batches);
              shape.aggregation = Aggregation::kMatrix;
              expect_as_on_cpu(kind, normalised, shape, seeds.batches);
            }
          }
    }
  }
};

TEST_F(DeviceSamplers, MakeTheMinibatchesOfTheCpu) {
  const Grid grid(test_world(), 1);
  const std::int64_t fanout[] = {-1, 0, 1, 5, 8, 9, 15, 16, 17, 31, 32, 33};
  try_graph<std::int32_t>(grid, kNodes, 18, fanout);
}

TEST_F(DeviceSamplers, AndWithWideIndices) {
  const Grid grid(test_world(), 1);
  const std::int64_t fanout[] = {-1, 8, 20, 40};
  try_graph<std::int64_t>(grid, kNodes, 18, fanout);
}

TEST_F(DeviceSamplers, ManyLayersOfEveryCase) {
  const Grid grid(test_world(), 1);
  const Seeds seeds(kNodes, {3, 20, 0, 1}, 8);
  for (const auto& c : cases())
    for (const char* kind : {"graphsage", "labor"}) {
      if (kind[0] == 'l' && c.shape.weighted) continue;
      expect_as_on_cpu(kind, matrix_of<std::int32_t>(grid, c, Topology::kReplicated), c.shape, seeds.batches);
      expect_as_on_cpu(kind, matrix_of<std::int64_t>(grid, c, Topology::kReplicated), c.shape, seeds.batches,
                       Placement::kHost);
    }
}

// Rows with exactly s - 1, s, s + 1 entries, beside hubs that have thousands.
TEST_F(DeviceSamplers, RowsAroundTheFanoutAndHubs) {
  const Grid grid(test_world(), 1);
  constexpr std::int64_t kVertices = 3000;
  Csr<std::int32_t> whole;
  whole.rows = whole.columns = kVertices;
  for (std::int64_t v = 0; v < kVertices; ++v) {
    const std::int64_t size = v % 1000 == 7 ? kVertices : v < 60 ? v : v % 4;
    for (std::int64_t k = 0; k < size; ++k)
      whole.indices.push_back(static_cast<std::int32_t>(size == kVertices ? k : k * 40 + v % 40));
    whole.indptr.push_back(whole.entries());
  }
  // Each row has a scale of its own.
  for (std::int64_t v = 0; v < kVertices; ++v)
    for (auto k = whole.row_begin(v); k < whole.row_end(v); ++k)
      whole.values.push_back(std::ldexp(static_cast<float>(k % 7) * 0.3f, static_cast<int>(v % 5 - 2) * 50));
  const auto weighted = distribute(grid, whole, Topology::kReplicated);
  whole.values.clear();
  const auto plain = distribute(grid, whole, Topology::kReplicated);
  Seeds seeds(kVertices, {}, 1);
  seeds.lists = {{7, 1007, 3}, std::vector<std::int64_t>(60), {}, {1}};
  std::iota(seeds.lists[1].begin(), seeds.lists[1].end(), std::int64_t{0});
  for (std::size_t b = 0; b < seeds.lists.size(); ++b)
    seeds.batches.push_back({static_cast<std::int64_t>(b), seeds.lists[b]});
  for (const std::int64_t s : {1, 15, 16, 40, 300, -1}) {
    SCOPED_TRACE(s);
    expect_as_on_cpu("graphsage", plain, {.fanout = {s}}, seeds.batches);
    expect_as_on_cpu("labor", plain, {.fanout = {s}}, seeds.batches);
    for (const auto draw : {DrawLaw::kIts, DrawLaw::kRace}) {
      expect_as_on_cpu("graphsage", weighted, {.fanout = {s}, .weighted = true, .draw = draw}, seeds.batches);
      expect_as_on_cpu("graphsage", normalize_with_self_loops(weighted),
                       {.fanout = {s}, .weighted = true, .draw = draw, .aggregation = Aggregation::kMatrix},
                       seeds.batches);
    }
  }
  // More than a warp keeps of a piece of a row.
  expect_as_on_cpu("graphsage", weighted, {.fanout = {2100}, .weighted = true, .draw = DrawLaw::kRace},
                   {seeds.batches.data(), 1});
}

// Their window may be gone: minibatches keep its memory.
TEST_F(DeviceSamplers, MinibatchesOutliveTheirWindow) {
  const Grid grid(test_world(), 1);
  const auto a = distribute(grid, random_graph<std::int32_t>(kNodes, 9, false, 5), Topology::kReplicated);
  const DeviceGrid device_grid(gpu(), grid);
  const auto copy = to_device(gpu(), device_grid, a);
  const Seeds seeds(kNodes, {10, 20}, 4);
  auto sampler = make_sampler(gpu(), "graphsage", copy, {.fanout = {4, 3}});
  auto kept = std::move(sampler->sample(gpu(), seeds.batches, 1, 1)[1]);
  sampler->sample(gpu(), seeds.batches, 2, 1);
  const auto oracle = make_sampler("graphsage", a, {.fanout = {4, 3}})->sample({1}, seeds.batches, 1, 1);
  expect_equal(to_host(gpu(), kept), oracle[1]);
}

TEST_F(DeviceSamplers, RefuseWhatTheCpuRefuses) {
  const Grid grid(test_world(), 1);
  const auto a = distribute(grid, random_graph<std::int32_t>(kNodes, 9, true, 5), Topology::kReplicated);
  const DeviceGrid device_grid(gpu(), grid);
  const auto copy = to_device(gpu(), device_grid, a);
  EXPECT_THROW(make_sampler(gpu(), "labor", copy, {.fanout = {2}, .weighted = true}), UserError);
  const auto plain = distribute(grid, random_graph<std::int32_t>(kNodes, 9, false, 5), Topology::kReplicated);
  const auto plain_copy = to_device(gpu(), device_grid, plain);
  EXPECT_THROW(make_sampler(gpu(), "graphsage", plain_copy, {.fanout = {2}, .weighted = true}), UserError);
}

}  // namespace
}  // namespace espalier
