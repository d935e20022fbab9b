// ranks: 1 2 3 4 6 8
// Laws of charged computing (base/work.hpp): without rates nothing is charged; gathers, bytes and launches are each charged
// at their own rate; what `push` charges over all ranks is the same on every grid, as every row and pick is handled once
// wherever it lies; `staged`, which copies whole rows, charges more.
#include <gtest/gtest.h>

#include "espalier/base/clock.hpp"
#include "espalier/base/work.hpp"
#include "mpi_test.hpp"
#include "sample/graphsage_cases.hpp"

namespace espalier {
namespace {

// Counts what is charged while it lives.
class Charges {
 public:
  explicit Charges(const std::optional<WorkRates>& rates) {
    set_clock({[] { return 0.0; }, [this](double seconds) { seconds_ += seconds; }});
    set_work_rates(rates);
  }
  ~Charges() {
    set_work_rates({});
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
  charge(Work{.gathers = 1e9, .bytes = 1e9, .launches = 7});
  EXPECT_EQ(charges.seconds(), 0);
}

TEST(ChargedWork, EachKindAtItsOwnRate) {
  const Charges charges(WorkRates{10, 100, 0.5});
  charge(Work{.gathers = 20, .bytes = 300, .launches = 4});
  EXPECT_DOUBLE_EQ(charges.seconds(), 20 / 10.0 + 300 / 100.0 + 4 * 0.5);
}

// Seconds over all ranks, launches aside: of those there are more where there are more ranks.
double charged_by(Schedule schedule, int copies, const Case& c) {
  const Grid grid(test_world(), copies);
  const auto a = matrix_of<std::int32_t>(grid, c, Topology::kPartitioned);
  auto shape = c.shape;
  shape.schedule = schedule;
  const auto sampler = make_sampler("graphsage", a, shape);
  const EpochPlan plan(training_vertices(), 10, grid.ranks(), grid.ranks(), 7, 1);
  std::vector<SeedBatch> mine;
  for (std::int64_t b = 0; b < plan.batches(); ++b)
    if (plan.rank_of(b) == grid.world().rank()) mine.push_back({b, plan.seeds(b)});
  const Charges charges(WorkRates{1, 32, 0});
  sampler->sample({1}, mine, 7, 1);
  return grid.world().all_reduce(charges.seconds(), Reduction::kSum, "test");
}

TEST(ChargedWork, PushChargesTheSameOnEveryGridAndCopyingRowsCostsMore) {
  const Case c = cases().front();
  double expected = 0;
  for (const int copies : divisors(test_world().size())) {
    if (copies == test_world().size()) continue;  // one block row: nothing is asked of others
    const double push = charged_by(Schedule::kPush, copies, c);
    EXPECT_GT(push, 0);
    if (expected == 0) expected = push;
    EXPECT_NEAR(push / expected, 1, 1e-9) << "c " << copies;
    EXPECT_GT(charged_by(Schedule::kStaged, copies, c), push) << "c " << copies;
  }
}

}  // namespace
}  // namespace espalier
