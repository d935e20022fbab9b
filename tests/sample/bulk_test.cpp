// ranks: 1 2 3
// Laws: the automatic bulk is at least one batch per rank, never more than the epoch, grows with
// memory and ranks, and what it stands for fits in the memory; an epoch is sampled in windows of
// exactly `bulk` batches, each when first needed or when it is begun ahead, each batch once and
// on its rank.
#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <thread>

#include "espalier/sample/epoch_sampler.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

constexpr std::int64_t kMiB = 1 << 20, kMuch = std::int64_t{1} << 50;

const SamplerKind& kNodeWise = sampler_kind_of("graphsage");

std::int64_t bulk_of(const std::vector<std::int64_t>& fanout, std::int64_t batch_size, std::int64_t batches,
                     int ranks, std::int64_t bytes) {
  return automatic_bulk({.fanout = fanout}, kNodeWise, batch_size, batches, ranks, 2, 100000, 1500000, bytes);
}

TEST(AutomaticBulk, IsBetweenOnePerRankAndTheEpoch) {
  struct Row {
    std::int64_t batches;
    int ranks;
    std::int64_t bytes, expected;
  };
  for (const auto& [batches, ranks, bytes, expected] : {Row{1000, 1, 0, 1},
                                                        {1000, 1, 1, 1},
                                                        {1000, 8, 1, 8},
                                                        {5, 8, 1, 5},
                                                        {1000, 1, kMuch, 1000},
                                                        {1000, 8, kMuch, 1000},
                                                        {1, 1, kMuch, 1},
                                                        {1, 8, kMuch, 1},
                                                        {0, 4, kMuch, 1}})
    EXPECT_EQ(bulk_of({15, 10, 5}, 1024, batches, ranks, bytes), expected)
        << batches << " " << ranks << " " << bytes;
}

TEST(AutomaticBulk, GrowsWithBytesAndRanksAndShrinksWithBatchAndFanout) {
  const std::int64_t batches = 1 << 30;
  const auto one = bulk_of({10, 5}, 64, batches, 1, 100 * kMiB);
  EXPECT_GT(one, 10);
  EXPECT_NEAR(static_cast<double>(bulk_of({10, 5}, 64, batches, 1, 400 * kMiB)) / static_cast<double>(one), 4,
              0.5);
  for (const int ranks : {2, 3, 8}) EXPECT_EQ(bulk_of({10, 5}, 64, batches, ranks, 100 * kMiB), ranks * one);
  EXPECT_LT(bulk_of({10, 5}, 128, batches, 1, 100 * kMiB), one);
  EXPECT_LT(bulk_of({10, 6}, 64, batches, 1, 100 * kMiB), one);
  EXPECT_LT(bulk_of({10, 5, 5}, 64, batches, 1, 100 * kMiB), one);
  EXPECT_EQ(bulk_of({-1, 5}, 64, batches, 1, 100 * kMiB), bulk_of({15, 5}, 64, batches, 1, 100 * kMiB))
      << "-1 counts as the mean degree, 15";
  EXPECT_EQ(bulk_of({1000, 5}, 64, batches, 1, 100 * kMiB), bulk_of({100000, 5}, 64, batches, 1, 100 * kMiB))
      << "a fanout far beyond the degrees picks no more";
}

// Where every row of the matrix is local, whatever the number of ranks, none is fetched: a window
// is what was picked, and marks of entries, of which ten times as many make it a few times smaller.
TEST(AutomaticBulk, ChargesFetchedRowsOnlyWhereThereAreOthers) {
  const std::int64_t batches = std::int64_t{1} << 40, nodes = 2400000;
  for (const std::string kind : {"graphsage", "fastgcn"}) {
    const auto bulk = [&](int ranks, int block_rows, std::int64_t degree) {
      return automatic_bulk({.fanout = {15, 10, 5}}, sampler_kind_of(kind), 1024, batches, ranks, block_rows,
                            nodes, nodes * degree, std::int64_t{40} << 30);
    };
    EXPECT_GT(bulk(1, 1, 500), bulk(1, 1, 50) / 5);
    EXPECT_GT(bulk(1, 1, 50), 3 * bulk(1, 2, 50));
    EXPECT_LT(bulk(1, 2, 500), bulk(1, 2, 50) / 7);
    EXPECT_EQ(bulk(4, 1, 50), 4 * bulk(1, 1, 50));
    EXPECT_EQ(bulk(4, 4, 50), 4 * bulk(1, 2, 50));
  }
}

// A layer-wise sampler holds its picks of every batch: ids and factors, 12 bytes at least, and not
// thousands.
TEST(AutomaticBulk, CountsThePicksOfLayers) {
  const std::int64_t nodes = 100000, edges = 100000, bytes = 100 * kMiB;
  const auto bulk = [&](std::int64_t fanout) {
    return automatic_bulk({.fanout = {fanout}}, sampler_kind_of("fastgcn"), 16, std::int64_t{1} << 40, 1, 1,
                          nodes, edges, bytes);
  };
  for (const std::int64_t fanout : {1000, 10000, 100000}) {
    EXPECT_LE(bulk(fanout) * fanout * 12, bytes);
    EXPECT_GE(bulk(fanout) * fanout * 2000, bytes);
  }
  EXPECT_EQ(bulk(-1), bulk(nodes));
  EXPECT_EQ(bulk(10 * nodes), bulk(nodes));
}

// An edge takes 8 + 4 bytes at the very least and not hundreds; a frontier has no more rows than
// the graph.
TEST(AutomaticBulk, FitsInTheMemoryAndUsesIt) {
  const std::int64_t batches = 1 << 30;
  const std::int64_t edges = 64 * 10 + 64 * 11 * 10 + 64 * 121 * 10;  // fanout 10, 10, 10
  const auto bulk = bulk_of({10, 10, 10}, 64, batches, 1, 1000 * kMiB);
  EXPECT_LE(bulk * edges * 12, 1000 * kMiB);
  EXPECT_GE(bulk * edges * 200, 1000 * kMiB);
  const std::int64_t nodes = 1000, layers = 5, most_edges = nodes * 41;  // mean degree 10
  EXPECT_GE(automatic_bulk({.fanout = std::vector<std::int64_t>(layers, 1000)}, kNodeWise, 100, batches, 1, 1,
                           nodes, 10 * nodes, 10 * layers * most_edges * 100),
            10);
}

// Records its calls; returns minibatches without layers.
class FakeSampler : public Sampler {
 public:
  const std::vector<Schedule>& schedules() const override { return schedules_; }
  std::vector<Minibatch> sample(const Cpu&, std::span<const SeedBatch> batches, std::uint64_t seed,
                                std::uint64_t epoch) override {
    EXPECT_EQ(seed, 7u);
    EXPECT_EQ(epoch, 3u);
    if (failing) input_error("no");
    thread = std::this_thread::get_id();
    calls.emplace_back();
    std::vector<Minibatch> minibatches;
    for (const auto& batch : batches) {
      calls.back().push_back(batch.number);
      ledger->book("sample", {.messages = 1});
      minibatches.push_back({batch.number, batch.seeds(), {}, nullptr});
    }
    return minibatches;
  }
  std::vector<std::vector<std::int64_t>> calls;
  Traffic own;
  Traffic* ledger = &own;
  std::thread::id thread;
  bool failing = false;

 private:
  std::vector<Schedule> schedules_;
};

TEST(EpochSampler, SamplesWindowsOfBulkBatchesWhenNeeded) {
  const Grid grid(test_world(), 1);
  Buffer<std::int64_t> training(68);  // 23 batches of 3, the last short
  std::iota(training.begin(), training.end(), 100);
  for (const std::int64_t step : {1, 2, 5})
    for (const std::int64_t bulk : {1, 2, 3, 7, 22, 23, 1000}) {
      SCOPED_TRACE(fmt::format("step {} bulk {}", step, bulk));
      const EpochPlan plan(training, 3, step, grid.ranks(), 7, 3);
      FakeSampler fake;
      EpochSampler sampler(grid, fake, plan, bulk);
      std::int64_t taken = 0;
      for (std::int64_t s = 0; s < plan.steps(); ++s) {
        const auto begin = plan.step_begin(s), end = plan.step_end(s);
        sampler.sample_until(Cpu{1}, end);
        EXPECT_EQ(std::ssize(fake.calls), (end + bulk - 1) / bulk)
            << "windows needed for " << end << " batches";
        auto expected = begin;
        for (const auto& minibatch : sampler.take(begin, end)) {
          while (expected < end && plan.rank_of(expected) != test_world().rank()) ++expected;
          EXPECT_EQ(minibatch.number, expected);
          const auto batch = plan.batch(expected++);
          EXPECT_TRUE(std::ranges::equal(minibatch.vertices, batch.seeds()));
          ++taken;
        }
        EXPECT_TRUE(sampler.take(begin, end).empty()) << "taken batches are gone";
      }
      std::int64_t mine = 0, rows = 0;
      for (std::size_t window = 0; window < fake.calls.size(); ++window) {
        const auto first = static_cast<std::int64_t>(window) * bulk;
        std::vector<std::int64_t> expected;
        for (auto b = first; b < std::min<std::int64_t>(first + bulk, 23); ++b) {
          if (plan.rank_of(b) != test_world().rank()) continue;
          expected.push_back(b);
          rows += plan.examples().count_seeds(b, b + 1);
        }
        EXPECT_EQ(fake.calls[window], expected);
        mine += std::ssize(expected);
      }
      EXPECT_EQ(taken, mine);
      EXPECT_EQ(sampler.counts().batches, mine);
      EXPECT_EQ(sampler.counts().input_rows, rows);
      const auto whole = sum_over_ranks(sampler.counts(), grid.world());
      EXPECT_EQ(whole.batches, 23);
      EXPECT_EQ(whole.input_rows, 68);
    }
}

TEST(EpochSampler, AThreadSamplesTheWindowsThatAreBegunAhead) {
  const Grid grid(test_world(), 1);
  Buffer<std::int64_t> training(68);  // 23 batches of 3
  std::iota(training.begin(), training.end(), 100);
  for (const std::int64_t bulk : {1, 3, 7, 23}) {
    SCOPED_TRACE(fmt::format("bulk {}", bulk));
    const EpochPlan plan(training, 3, 2, grid.ranks(), 7, 3);
    FakeSampler now, later;
    const auto beside = test_world().duplicate();
    later.ledger = &beside.traffic();
    SampleAhead ahead{beside};
    EpochSampler expected(grid, now, plan, bulk), sampler(grid, later, plan, bulk, &ahead);
    grid.traffic().clear();
    later.ledger->book("setup", {.messages = 1});
    for (std::int64_t s = 0; s < plan.steps(); ++s) {
      const auto begin = plan.step_begin(s), end = plan.step_end(s);
      expected.sample_until(Cpu{1}, end);
      sampler.sample_until(Cpu{1}, end);
      EXPECT_EQ(later.calls.size(), now.calls.size() + (sampler.under_way() ? 1 : 0));
      EXPECT_EQ(grid.traffic().of("sample").messages, expected.counts().batches) << "booked when waited for";
      if (s % 3 != 1 && !sampler.under_way()) {
        sampler.begin_window(Cpu{1});
        EXPECT_EQ(sampler.under_way(), std::ssize(now.calls) * bulk < 23);
      }
      const auto taken = sampler.take(begin, end), wanted = expected.take(begin, end);
      ASSERT_EQ(taken.size(), wanted.size());
      for (std::size_t m = 0; m < taken.size(); ++m) EXPECT_EQ(taken[m].number, wanted[m].number);
      ahead.queue.wait();
    }
    EXPECT_TRUE(sampler.all_begun());
    EXPECT_EQ(grid.traffic().of("setup").messages, 0) << "what came before the windows is not theirs";
    EXPECT_EQ(later.calls, now.calls);
    EXPECT_EQ(sampler.counts().batches, expected.counts().batches);
    EXPECT_NE(later.thread, std::this_thread::get_id());
  }
}

TEST(EpochSampler, SeveralShareTheThreadWhichFinishesAWindowBeforeTheNext) {
  struct Slow : FakeSampler {
    std::vector<Minibatch> sample(const Cpu& cpu, std::span<const SeedBatch> batches, std::uint64_t seed,
                                  std::uint64_t epoch) override {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      return FakeSampler::sample(cpu, batches, seed, epoch);
    }
  } slow;
  const Grid grid(test_world(), 1);
  Buffer<std::int64_t> training(9, 1);
  const EpochPlan plan(training, 3, 1, grid.ranks(), 7, 3);
  FakeSampler fake;
  SampleAhead ahead{test_world()};
  EpochSampler one(grid, slow, plan, 3, &ahead), other(grid, fake, plan, 3, &ahead);
  one.begin_window(Cpu{1});
  other.begin_window(Cpu{1});
  other.sample_until(Cpu{1}, 3);
  EXPECT_EQ(slow.calls.size(), 1u) << "its window was begun before";
  one.sample_until(Cpu{1}, 3);
  EXPECT_EQ(fake.calls.size(), 1u);
}

TEST(EpochSampler, TheThreadsErrorIsTheCallersAndAWindowMayBeLeft) {
  const Grid grid(test_world(), 1);
  Buffer<std::int64_t> training(9, 1);
  const EpochPlan plan(training, 3, 1, grid.ranks(), 7, 3);
  FakeSampler fake;
  SampleAhead ahead{test_world()};
  {
    EpochSampler left(grid, fake, plan, 1, &ahead);
    left.begin_window(Cpu{1});
  }
  EXPECT_EQ(fake.calls.size(), 1u);
  fake.failing = true;
  EpochSampler sampler(grid, fake, plan, 1, &ahead);
  sampler.begin_window(Cpu{1});
  EXPECT_THROW(sampler.sample_until(Cpu{1}, 1), UserError);
}

}  // namespace
}  // namespace espalier
