// Law: blocks of the layers that a window was asked for come with their transposes, in memory that
// stays as long as the minibatches.
// ranks: 1
#include <map>
#include <numeric>

#include "dense/device_matrices.hpp"
#include "espalier/sample/epoch_sampler.hpp"
#include "espalier/sparse/transpose.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

// Minibatches of three blocks each.
class SamplerOfBlocks : public SamplerOn<Cuda> {
 public:
  const std::vector<Schedule>& schedules() const override { return schedules_; }
  std::vector<MinibatchOn<Cuda>> sample(const Cuda& cuda, std::span<const SeedBatch> batches, std::uint64_t,
                                        std::uint64_t) override {
    std::vector<MinibatchOn<Cuda>> minibatches;
    for (const auto& batch : batches) {
      std::mt19937_64 random(static_cast<std::uint64_t>(batch.number));
      const auto made = std::make_shared<std::vector<Csr<std::int32_t, Cuda>>>();
      auto& minibatch = minibatches.emplace_back(MinibatchOn<Cuda>{batch.number, {}, {}, made});
      for (const std::int64_t rows : {50, 20, 10}) {
        on_host[batch.number].push_back(random_block_matrix(rows, 2 * rows, 4, random));
        made->push_back(upload(cuda, on_host[batch.number].back()));
      }
      for (const auto& block : *made) minibatch.blocks.emplace_back(block);
      vertices.resize(100);
      fill_zero(cuda, vertices);
      minibatch.vertices = {vertices.data(), 100};
    }
    return minibatches;
  }
  std::map<std::int64_t, std::vector<Block>> on_host;
  DeviceArray<std::int64_t> vertices;

 private:
  std::vector<Schedule> schedules_;
};

class TransposedBlocksCuda : public CudaTest {};

TEST_F(TransposedBlocksCuda, OfTheLayersAskedForComeWithTheirBlocks) {
  const Grid grid(test_world(), 1);
  Buffer<std::int64_t> training(9);
  std::iota(training.begin(), training.end(), 0);
  const EpochPlan plan(training, 3, 1, grid.ranks(), 7, 3);
  SamplerOfBlocks blocks;
  std::vector<MinibatchOn<Cuda>> minibatches;
  {
    EpochSamplerOn<Cuda> sampler(grid, blocks, plan, 2, nullptr, 0, std::vector<std::size_t>{1, 2});
    sampler.sample_until(gpu(), 3);
    minibatches = sampler.take(0, 3);
  }
  ASSERT_EQ(minibatches.size(), 3u);
  for (const auto& minibatch : minibatches) {
    EXPECT_EQ(minibatch.blocks[0].transposed.indptr, nullptr);
    for (const std::size_t layer : {1u, 2u}) {
      const auto expected = transpose(blocks.on_host[minibatch.number][layer]);
      const auto& made = minibatch.blocks[layer].transposed;
      const auto first = download(gpu(), made.indptr, 1)[0];
      const auto entries = static_cast<std::size_t>(expected.entries());
      EXPECT_EQ(download(gpu(), made.indices + first, entries), expected.indices);
      EXPECT_EQ(download(gpu(), made.values + first, entries), expected.values);
    }
  }
}

}  // namespace
}  // namespace espalier
