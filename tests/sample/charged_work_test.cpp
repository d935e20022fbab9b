// ranks: 1 2 3 4 6
// long ranks: 8
// Laws of charged computing (bench/simulated/memory_work.hpp): without rates nothing is charged;
// gathers, bytes and launches are each charged at their own rate; what `push` charges over all
// ranks is the same on every grid, as every row and pick is handled once wherever it lies;
// `staged`, which copies whole rows, charges more. Draws by weight read all weights of a row.
#include <gtest/gtest.h>

#include "../../bench/simulated/memory_work.hpp"
#include "espalier/base/clock.hpp"
#include "espalier/sample/epoch_plan.hpp"
#include "mpi_test.hpp"
#include "sample/graphsage_cases.hpp"

namespace espalier {
namespace {

// Counts what is charged while it lives.
class Charges {
 public:
  explicit Charges(const std::optional<WorkRates>& rates) {
    set_clock({[] { return 0.0; }, [this](double seconds) { seconds_ += seconds; }});
    charge_memory_steps(rates);
  }
  ~Charges() {
    charge_memory_steps({});
    set_clock({[] { return MPI_Wtime(); }, [](double) {}});
  }
  Charges(const Charges&) = delete;
  Charges& operator=(const Charges&) = delete;
  double seconds() const { return seconds_; }

 private:
  double seconds_ = 0;
};

TEST(ChargedWork, NothingWithoutRates) {
  const Charges charges({});
  Traffic traffic;
  traffic.count(MemoryStep::kDraw, {.rows = 1000, .entries = 5000});
  EXPECT_EQ(charges.seconds(), 0);
  EXPECT_EQ(traffic.of(MemoryStep::kDraw).entries, 5000);
}

TEST(ChargedWork, EachKindAtItsOwnRate) {
  const Charges charges(WorkRates{10, 100, 0.5});
  Traffic traffic;
  traffic.count(MemoryStep::kDraw, {.rows = 20, .entries = 30});
  EXPECT_DOUBLE_EQ(charges.seconds(), 50 / 10.0 + (32 * 20 + 4 * 30) / 100.0 + 3 * 0.5);
}

TEST(ChargedWork, CountsOfALedgerAddUpAndAreTakenOver) {
  Traffic mine, other;
  mine.count(MemoryStep::kReply, {.rows = 1, .bytes = 10});
  other.count(MemoryStep::kReply, {.rows = 2, .bytes = 20});
  mine.take_over(other);
  EXPECT_EQ(mine.of(MemoryStep::kReply).rows, 3);
  EXPECT_EQ(mine.of(MemoryStep::kReply).bytes, 30);
  EXPECT_EQ(other.of(MemoryStep::kReply).rows, 0);
}

struct Sampled {
  // Charged on all ranks, at 1 gather and 32 bytes a second; launches cost nothing.
  double seconds = 0;
  double rows = 0, picks = 0, vertices = 0, blocks = 0;
  std::int64_t weight_bytes = 0, served_entries = 0;
};

Sampled sample_by(Schedule schedule, int copies, const Case& c = cases().front()) {
  const Grid grid(test_world(), copies);
  const auto a = matrix_of<std::int32_t>(grid, c, Topology::kPartitioned);
  auto shape = c.shape;
  shape.schedule = schedule;
  const auto sampler = make_sampler("graphsage", a, shape);
  const EpochPlan plan(training_vertices(), 10, grid.ranks(), grid.ranks(), 7, 1);
  std::vector<SeedBatch> mine;
  for (const auto b : plan.kept_by(grid.world().rank(), 0, plan.batches())) mine.push_back(plan.batch(b));
  grid.traffic().clear();
  double sums[5] = {};
  {
    const Charges charges(WorkRates{1, 32, 0});
    for (const auto& minibatch : sampler->sample({1}, mine, 7, 1))
      for (const auto& block : minibatch.blocks) {
        sums[1] += static_cast<double>(block.rows);
        sums[2] += static_cast<double>(block.entries());
        sums[3] += static_cast<double>(block.columns);
        sums[4] += 1;
      }
    sums[0] = charges.seconds();
  }
  grid.world().all_reduce(std::span<double>(sums), Reduction::kSum, "test");
  const auto& traffic = grid.traffic();
  const auto total = [&](std::int64_t count) {
    return grid.world().all_reduce(count, Reduction::kSum, "test");
  };
  return {sums[0],
          sums[1],
          sums[2],
          sums[3],
          sums[4],
          total(traffic.of(MemoryStep::kDraw).bytes),
          total(traffic.served("sample").entries)};
}

// The table of docs/scaling.md: 6 gathers and 140 bytes for a row, 4 and 24 for a pick, 12 bytes
// for a vertex, and 40 for each word of marks of a batch (n = 157: 3 words).
TEST(ChargedWork, PushChargesTheSameOnEveryGridAndCopyingRowsCostsMore) {
  for (const int copies : divisors(test_world().size())) {
    if (copies == test_world().size()) continue;  // one block row: nothing is asked of others
    const auto push = sample_by(Schedule::kPush, copies);
    EXPECT_NEAR(push.seconds,
                push.rows * (6 + 140 / 32.0) + push.picks * (4 + 24 / 32.0) + push.vertices * 12 / 32.0 +
                    push.blocks * 3 * 40 / 32.0,
                1e-9 * push.seconds)
        << "c " << copies;
    EXPECT_GT(sample_by(Schedule::kStaged, copies).seconds, push.seconds) << "c " << copies;
  }
}

TEST(ChargedWork, DrawsByWeightReadTheWeightsOfAllEntriesAskedFor) {
  for (const int copies : divisors(test_world().size())) {
    if (copies == test_world().size()) continue;
    const auto weighted = sample_by(Schedule::kPush, copies, cases()[2]);
    EXPECT_GT(weighted.served_entries, 0);
    EXPECT_EQ(weighted.weight_bytes, 4 * weighted.served_entries) << "c " << copies;
    EXPECT_EQ(sample_by(Schedule::kPush, copies).weight_bytes, 0);
  }
}

}  // namespace
}  // namespace espalier
