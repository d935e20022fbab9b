// ranks: 1
// Laws: step and cosine schedules are PyTorch's; the warm-up rises linearly to the base rate and
// shifts the schedule.
#include "espalier/train/learning_rate.hpp"

#include <gtest/gtest.h>

#include "espalier/base/error.hpp"
#include "oracle/fixture.hpp"

namespace espalier {
namespace {

TEST(LearningRate, AgreesWithPyTorch) {
  for (const auto& json : read_fixture("schedules")) {
    const LearningRateSchedule schedule{json.at("kind"),  json.at("base"),   json.at("epochs"), 0,
                                        json.at("every"), json.at("factor"), json.at("minimum")};
    const auto rates = json.at("rates").get<std::vector<double>>();
    for (std::size_t epoch = 0; epoch < rates.size(); ++epoch)
      EXPECT_NEAR(learning_rate(schedule, static_cast<std::int64_t>(epoch)), rates[epoch], 1e-14)
          << schedule.kind << " epoch " << epoch;
  }
}

TEST(LearningRate, WarmsUp) {
  LearningRateSchedule schedule;
  schedule.base = 0.8;
  schedule.warmup = 4;
  schedule.epochs = 14;
  const double expected[] = {0.2, 0.4, 0.6, 0.8, 0.8, 0.8};
  for (std::int64_t epoch = 0; epoch < 6; ++epoch)
    EXPECT_DOUBLE_EQ(learning_rate(schedule, epoch), expected[epoch]);
  schedule.kind = "cosine";
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 3), 0.8);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 4), 0.8);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 9), 0.4) << "half way through the ten epochs after the warm-up";
  EXPECT_NEAR(learning_rate(schedule, 20), 0, 1e-16) << "does not rise again";
}

TEST(LearningRate, RefusesAnUnknownKind) {
  LearningRateSchedule schedule;
  schedule.kind = "exponential";
  EXPECT_THROW(learning_rate(schedule, 0), UserError);
}

}  // namespace
}  // namespace espalier
