// ranks: 6 8
// long ranks: 4
// Laws of the alpha-beta model: where ids are spread evenly over the block rows, what a schedule
// books as expected under each label, and what product_cost says of the measured work, lie within 5
// % of what was counted. The choice of a schedule follows from hand-made extremes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "espalier/base/philox.hpp"
#include "espalier/product/product.hpp"
#include "mpi_test.hpp"
#include "product/product_cases.hpp"

namespace espalier {
namespace {

constexpr std::int64_t kVertices = 4800, kBatches = 3, kFanout = 5;

// Rows of 8 to 24 random columns.
Csr<std::int32_t> uniform_graph(bool weighted) {
  Csr<std::int32_t> a;
  a.rows = a.columns = kVertices;
  for (std::int64_t v = 0; v < kVertices; ++v) {
    const RandomStream stream = {.seed = test_seed(41), .row = static_cast<std::uint64_t>(v)};
    std::set<std::int32_t> columns;
    const auto size = 8 + random_below(stream, 0, 17);
    for (std::uint64_t draw = 1; columns.size() < size; ++draw)
      columns.insert(static_cast<std::int32_t>(random_below(stream, draw, kVertices)));
    a.indices.insert(a.indices.end(), columns.begin(), columns.end());
    if (weighted) a.values.insert(a.values.end(), columns.size(), 0.5f);
    a.indptr.push_back(std::ssize(a.indices));
  }
  return a;
}

// Every vertex in the first two batches of exactly one rank, evenly spread over the blocks; the
// third batch is the first once more, so half of a rank's rows are wanted twice. Batches of
// different ranks share no vertex.
std::vector<std::int64_t> frontier_of(int rank, std::int64_t batch) {
  const std::int64_t stride = 2 * test_world().size();
  std::vector<std::int64_t> frontier;
  for (auto v = 2 * rank + batch % 2; v < kVertices; v += stride) frontier.push_back(v);
  return frontier;
}

Frontier stacked(int rank) {
  std::vector<std::vector<std::int64_t>> frontiers;
  std::vector<std::int64_t> numbers;
  for (std::int64_t b = 0; b < kBatches; ++b) {
    frontiers.push_back(frontier_of(rank, b));
    numbers.push_back(kBatches * rank + b);
  }
  return stack_frontier(Cpu{1}, frontiers, numbers);
}

// 200 + 100 b columns of batch b, evenly spread.
std::vector<std::vector<std::int32_t>> picks_of_batches() {
  std::vector<std::vector<std::int32_t>> lists;
  for (std::int64_t b = 0; b < kBatches; ++b) {
    lists.emplace_back();
    for (std::int64_t k = 0; k < 200 + 100 * b; ++k)
      lists.back().push_back(static_cast<std::int32_t>(k * kVertices / (200 + 100 * b)));
  }
  return lists;
}

// The first kFanout entries of a row, without values.
class Take final : public RowOperation<std::int32_t> {
 public:
  bool has_values() const override { return false; }
  void apply(const Cpu&, const RowView<std::int32_t>* rows, const RowKey*, std::int64_t count,
             Entries<std::int32_t>& out) const override {
    for (std::int64_t r = 0; r < count; ++r) {
      out.ids.insert(out.ids.end(), rows[r].indices, rows[r].indices + std::min(rows[r].size, kFanout));
      out.end_row();
    }
  }
};

enum class Use { kApply, kSumAndColumns };

void run(const DistCsr<std::int32_t>& a, Schedule schedule, Use use) {
  const auto q = stacked(test_world().rank());
  std::vector<std::int32_t> picks;
  std::vector<std::int64_t> ends = {0};
  for (const auto& list : picks_of_batches()) {
    picks.insert(picks.end(), list.begin(), list.end());
    ends.push_back(std::ssize(picks));
  }
  const Cpu cpu;
  a.grid->traffic().clear();
  const auto product = open_product(cpu, q, a, schedule, "x");
  if (use == Use::kApply) {
    product->apply(cpu, Take());
  } else {
    product->sum(cpu, {}, [](std::int64_t, const SparseSum<std::int32_t>&) {});
    product->columns(cpu, picks.data(), {cpu, ends});
  }
}

// The place of the server of v, when `parts` blocks are dealt to `groups` as evenly as
// possible, in order.
int server_of(const DistCsr<std::int32_t>& a, int groups, std::int64_t v) {
  return block_partition(a.parts(), groups).owner(a.ownership.owner(v));
}

// Counted by hand. `groups`: among how many servers the rows of a batch are summed.
ProductWork work_of(const Csr<std::int32_t>& whole, const DistCsr<std::int32_t>& a, Use use, int groups) {
  const auto q = stacked(test_world().rank());
  const auto lists = picks_of_batches();
  ProductWork work = {.batches = static_cast<double>(q.batches()), .rows = static_cast<double>(q.rows())};
  for (const auto v : q.vertices) work.row_entries += static_cast<double>(whole.row_size(v));
  for (const auto v : std::set<std::int64_t>(q.vertices.begin(), q.vertices.end())) {
    ++work.distinct;
    work.distinct_entries += static_cast<double>(whole.row_size(v));
  }
  if (use == Use::kApply) {
    work.results = static_cast<double>(kFanout * q.rows());
    return work;
  }
  for (std::int64_t b = 0; b < kBatches; ++b) {
    const auto& picks = lists[static_cast<std::size_t>(b)];
    std::set<std::pair<int, std::int32_t>> sums;
    for (const auto v : frontier_of(test_world().rank(), b))
      for (const auto column : whole.row_indices(v)) {
        sums.emplace(server_of(a, groups, v), column);
        work.results += std::binary_search(picks.begin(), picks.end(), column);
      }
    work.sums += static_cast<double>(sums.size());
    work.picks += static_cast<double>(picks.size());
  }
  return work;
}

// Runs check(grid, whole, a, schedule, use) for everything that sends something.
template <class Check>
void for_every_case(Check check) {
  for (const bool weighted : {false, true}) {
    const auto whole = uniform_graph(weighted);
    for (const int c : divisors(test_world().size())) {
      const Grid grid(test_world(), c);
      if (grid.rows() == 1) continue;
      const auto a = distribute(grid, whole, Topology::kPartitioned);
      for (const auto schedule : kSchedules)
        for (const auto use : {Use::kApply, Use::kSumAndColumns}) {
          SCOPED_TRACE(fmt::format("{} p {} c {}, {}, {}", name_of(schedule), test_world().size(), c,
                                   use == Use::kApply ? "apply" : "sum and columns",
                                   weighted ? "with values" : "no values"));
          run(a, schedule, use);
          check(grid, whole, a, schedule, use);
        }
    }
  }
}

// Sums over all ranks: (counted, expected).
std::array<double, 2> totals(double counted, double expected) {
  std::array<double, 2> both = {counted, expected};
  test_world().all_reduce(std::span<double>(both), Reduction::kSum, "check");
  return both;
}

void expect_within_5_percent(const std::array<double, 2>& both, const std::string& what) {
  EXPECT_NEAR(both[1], both[0], 0.05 * both[0]) << "expected against counted " << what;
}

// Every pair of ranks has something to exchange, so messages can be counted on paper.
TEST(CostModel, ExpectsBytesAndMessagesUnderEveryLabelAndOfTheMeasuredWork) {
  for_every_case([](const Grid& grid, const auto& whole, const auto& a, Schedule schedule, Use use) {
    const auto expect = [](const Volume& volume, double bytes, double messages, const std::string& what) {
      expect_within_5_percent(totals(static_cast<double>(volume.bytes_received), bytes), "bytes of " + what);
      expect_within_5_percent(totals(static_cast<double>(volume.messages), messages), "messages of " + what);
    };
    for (const char* label : kLabels) {
      const auto volume = grid.traffic().of(label);
      expect(volume, volume.predicted_bytes, volume.predicted_messages, label);
    }
    const int groups = schedule == Schedule::kPush ? grid.rows() : grid.replication();
    const ProductShape shape = {.parts = grid.rows(),
                                .replication = grid.replication(),
                                .rows = static_cast<double>(kVertices),
                                .entries = static_cast<double>(whole.entries()),
                                .index_bytes = 4,
                                .value_bytes = whole.has_values() ? 4 : 0};
    const auto cost = product_cost(schedule, shape, work_of(whole, a, use, groups));
    expect(grid.traffic().of_stage("x"), cost.bytes, cost.messages, "the measured work");
  });
}

TEST(CostModel, OfOneBlockRowIsNothing) {
  const ProductWork work = {
      .batches = 2, .rows = 10, .row_entries = 100, .distinct = 10, .distinct_entries = 100};
  for (const auto schedule : kSchedules) {
    const auto cost =
        product_cost(schedule, {.parts = 1, .replication = 4, .rows = 50, .entries = 500}, work);
    EXPECT_EQ(cost.messages, 0);
    EXPECT_EQ(cost.bytes, 0);
  }
}

// 2 parts, 10 distinct rows of 100 entries of 4 bytes: half of them lie elsewhere. Counts 8; ids 5
// x 4; sizes 5 x 4; entries 50 x 4.
TEST(CostModel, OfAPullByHand) {
  const ProductWork work = {
      .batches = 2, .rows = 15, .row_entries = 150, .distinct = 10, .distinct_entries = 100};
  const auto cost = product_cost(Schedule::kPull, {.parts = 2, .replication = 1}, work);
  EXPECT_DOUBLE_EQ(cost.bytes, 8 + 20 + 20 + 200);
  EXPECT_DOUBLE_EQ(cost.messages, 4);  // counts, ids, sizes, entries
}

// The same pushed, 2 results a row: counts 8, lines 2 x 16, ids 7.5 x 4; sizes 7.5 x 4,
// results 15 x 4.
TEST(CostModel, OfAPushByHand) {
  const ProductWork work = {
      .batches = 2, .rows = 15, .row_entries = 150, .distinct = 10, .distinct_entries = 100, .results = 30};
  const auto cost = product_cost(Schedule::kPush, {.parts = 2, .replication = 1}, work);
  EXPECT_DOUBLE_EQ(cost.bytes, 8 + 32 + 30 + 30 + 60);
  EXPECT_DOUBLE_EQ(cost.messages, 5);  // counts, lines, ids, sizes, results
}

// ---- The choice ---------------------------------------------------------------------------------

constexpr ProductShape kEightParts = {.parts = 8, .replication = 1, .rows = 1e7, .entries = 1e9};

TEST(ChooseSchedule, PushesWhereFewPicksRemainOfWideRows) {
  const ProductWork work = {.batches = 16,
                            .rows = 1e6,
                            .row_entries = 1e8,
                            .distinct = 9e5,
                            .distinct_entries = 9e7,
                            .results = 5e6};
  EXPECT_EQ(choose_schedule(kUsualLink, kEightParts, work), Schedule::kPush);
}

TEST(ChooseSchedule, PullsWhereWholeRowsAreTakenAgainAndAgain) {
  const ProductWork work = {.batches = 16,
                            .rows = 1e6,
                            .row_entries = 1e8,
                            .distinct = 2e5,
                            .distinct_entries = 2e7,
                            .results = 1e8};
  EXPECT_EQ(choose_schedule(kUsualLink, kEightParts, work), Schedule::kPull);
}

// Push would save nearly all bytes, but needs a message more to every rank.
TEST(ChooseSchedule, PullsWhereOnlyMessagesCount) {
  const ProductWork work = {.batches = 1,
                            .rows = 100,
                            .row_entries = 10000,
                            .distinct = 100,
                            .distinct_entries = 10000,
                            .results = 100};
  EXPECT_EQ(choose_schedule({.latency_us = 1e6, .bandwidth_gbs = 1000}, kEightParts, work), Schedule::kPull);
  EXPECT_EQ(choose_schedule({.latency_us = 0, .bandwidth_gbs = 1}, kEightParts, work), Schedule::kPush);
}

// On a 4 x 2 grid a stage is one exchange of counts and one block's rows: with 2 stages and the
// inquiry along the row, staged takes (2 x 3) + 3 (2 x 3 / 4) + 5 = 15.5 messages, pull 12.
TEST(ChooseSchedule, KnowsThatEveryStageExchangesCounts) {
  const ProductShape shape = {.parts = 4, .replication = 2, .rows = 1e7, .entries = 1e9};
  const ProductWork work = {.batches = 1,
                            .rows = 100,
                            .row_entries = 1000,
                            .distinct = 100,
                            .distinct_entries = 1000,
                            .results = 500};
  EXPECT_EQ(choose_schedule({.latency_us = 1e6, .bandwidth_gbs = 1000}, shape, work), Schedule::kPull);
}

// The choice is never dearer than any schedule it could have taken.
TEST(ChooseSchedule, IsTheCheapestOfRandomWorks) {
  for (std::uint64_t k = 0; k < 300; ++k) {
    const RandomStream stream = {.seed = test_seed(42), .row = k};
    const auto draw = [&](std::uint64_t d, double most) {
      return most * to_unit_double(random64(stream, d)) * to_unit_double(random64(stream, d + 10));
    };
    const int c = 1 << random_below(stream, 30, 3);
    const ProductShape shape = {
        .parts = c * (1 << random_below(stream, 31, 4)), .replication = c, .rows = 1e6, .entries = 1e7};
    ProductWork work = {.batches = 4, .rows = draw(0, 1e5)};
    work.row_entries = work.rows * draw(1, 100);
    work.distinct = work.rows * draw(2, 1);
    work.distinct_entries = work.row_entries * draw(3, 1);
    work.results = work.row_entries * draw(4, 1);
    if (k % 2) work.picks = draw(5, 1e4), work.sums = work.row_entries * draw(6, 1);
    const Link link = {.latency_us = draw(7, 100), .bandwidth_gbs = 1 + draw(8, 20)};
    const auto seconds = [&](Schedule schedule) {
      const auto cost = product_cost(schedule, shape, work);
      return link.seconds(cost.messages, cost.bytes);
    };
    const auto chosen = choose_schedule(link, shape, work);
    EXPECT_NE(chosen, Schedule::kAuto);
    for (const auto other : {Schedule::kPull, Schedule::kPush, Schedule::kStaged})
      EXPECT_LE(seconds(chosen), seconds(other)) << name_of(chosen) << " against " << name_of(other);
  }
}

}  // namespace
}  // namespace espalier
