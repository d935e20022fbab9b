// Law: blocks of the layers that a window was asked for come with the transposes of what is left of
// them, in memory that stays as long as the minibatches.
// ranks: 1
#include <array>
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

// Every batch leaves out entries between the first vertices.
class SomeLeftOut final : public Examples {
 public:
  explicit SomeLeftOut(std::shared_ptr<const Examples> all) : all_(std::move(all)) {
    for (std::int32_t row = 0; row < 10; ++row)
      for (std::int32_t column = row % 2; column < 10; column += 2) pairs_.push_back({row, column});
  }
  std::int64_t batches() const override { return all_->batches(); }
  std::int64_t count_seeds(std::int64_t begin, std::int64_t end) const override {
    return all_->count_seeds(begin, end);
  }
  SeedBatch batch(std::int64_t k) const override {
    auto batch = all_->batch(k);
    batch.exclude_edges(pairs_);
    return batch;
  }

 private:
  std::shared_ptr<const Examples> all_;
  std::vector<SeedPair> pairs_;
};

class TransposedBlocksCuda : public CudaTest {};

TEST_F(TransposedBlocksCuda, OfTheLayersAskedForComeWithTheirBlocks) {
  const Grid grid(test_world(), 1);
  Buffer<std::int64_t> training(9);
  std::iota(training.begin(), training.end(), 0);
  const EpochShape shape = {3, 1, grid.ranks(), 7, 3};
  const EpochPlan plan(std::make_shared<SomeLeftOut>(VertexSource({training}).of_epoch(shape)), shape);
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
    std::vector<Minibatch> left(1);
    const auto& sampled = blocks.on_host[minibatch.number];
    left[0].blocks.assign(sampled.begin(), sampled.end());
    exclude_edges(Cpu{1}, std::array{plan.batch(minibatch.number)}, left);
    EXPECT_LT(left[0].blocks[2].entries(), sampled[2].entries());
    for (const std::size_t layer : {1u, 2u}) {
      const auto expected = transpose(left[0].blocks[layer]);
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
