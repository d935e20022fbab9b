// Law: a row is awaited if and only if a step in (after, until] looks for it, or the epoch ends
// before `until`; of several epochs that of the step that writes counts.
#include "espalier/feature/history_uses.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <tuple>

namespace espalier {
namespace {

TEST(HistoryUses, AreThoseOfASet) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 20; ++round) {
    const std::int64_t end = 10 + static_cast<std::int64_t>(random() % 40), vertices = round == 0 ? 5000 : 60;
    HistoryUses uses(end);
    std::set<std::tuple<int, std::int64_t, std::int64_t>> all;
    for (std::int64_t step = 3; step < end; ++step)
      for (std::int64_t k = 0; k < vertices / 4; ++k) {
        const int layer = 1 + static_cast<int>(random() % 3);
        const auto vertex = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(vertices));
        uses.add(layer, vertex, step);
        all.emplace(layer, vertex, step);
      }
    const std::int64_t lag = random() % 3, t_stale = random() % 9;
    for (std::int64_t step = 3; step < end; ++step)
      for (int layer = 1; layer <= 3; ++layer)
        for (std::int64_t v = 0; v < vertices; v += 1 + static_cast<std::int64_t>(random() % 3)) {
          bool expected = step + t_stale >= end;
          for (auto s = step + lag + 1; s <= step + t_stale; ++s) expected |= all.contains({layer, v, s});
          ASSERT_EQ(uses.awaited(layer, v, step + lag, step + t_stale), expected) << step << " " << v;
        }
  }
}

TEST(HistoryUses, OfTheEpochThatAStepIsOf) {
  HistoryUsesOfEpochs epochs;
  EXPECT_TRUE(epochs.awaited(0, 1, 7, 1, 3)) << "not known";
  epochs.of_epoch_until(10).add(1, 7, 4);
  epochs.of_epoch_until(20).add(1, 8, 14);
  EXPECT_TRUE(epochs.awaited(2, 1, 7, 3, 5));
  EXPECT_FALSE(epochs.awaited(2, 1, 8, 3, 5));
  EXPECT_TRUE(epochs.awaited(8, 1, 8, 9, 12)) << "beyond its epoch";
  EXPECT_FALSE(epochs.awaited(11, 1, 7, 12, 15));
  EXPECT_TRUE(epochs.awaited(11, 1, 8, 12, 15));
  epochs.forget(9);
  EXPECT_FALSE(epochs.awaited(11, 1, 7, 12, 15)) << "the next one stays";
  epochs.of_epoch_until(20);
  EXPECT_FALSE(epochs.awaited(11, 1, 8, 12, 15)) << "instead of what there was";
}

}  // namespace
}  // namespace espalier
