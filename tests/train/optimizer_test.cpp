// ranks: 1
// Laws: six steps of Adam and SGD are PyTorch's to 1e-12 (weight decay on the asked weight matrices
// only); a restart from the saved state gives the same bits; threads do not matter. Step and cosine
// schedules are PyTorch's; the warm-up rises linearly to the base rate and shifts the schedule.
#include "espalier/train/optimizer.hpp"

#include <gtest/gtest.h>

#include "dense/random_matrices.hpp"
#include "espalier/base/error.hpp"
#include "mpi_test.hpp"
#include "oracle/fixture.hpp"

namespace espalier {
namespace {

std::vector<Parameter<double>> parameters_of(const nlohmann::json& json) {
  return {{"layer1.weight", 1, true, to_matrix<double>(json.at(0))},
          {"layer1.bias", 1, false, to_matrix<double>(json.at(1))},
          {"layer2.weight", 2, true, to_matrix<double>(json.at(2))}};
}

TEST(Optimizer, AgreesWithPyTorch) {
  for (const auto& json : read_fixture("optimizers")) {
    OptimizerOptions options{json.at("kind"),           json.at("momentum"), json.at("beta1"),
                             json.at("beta2"),          json.at("epsilon"),  json.at("weight_decay"),
                             json.at("weight_decay_on")};
    SCOPED_TRACE(options.kind + " decay on " + options.weight_decay_on);
    auto parameters = parameters_of(json.at("initial"));
    Optimizer<double> optimizer(Cpu{}, options, parameters);
    for (const auto& step : json.at("steps")) {
      std::vector<Matrix<double>> gradients;
      for (const auto& gradient : step.at("gradients")) gradients.push_back(to_matrix<double>(gradient));
      optimizer.step(Cpu{1}, step.at("learning_rate"), gradients, parameters);
      for (std::size_t k = 0; k < parameters.size(); ++k)
        EXPECT_LT(largest_difference(parameters[k].value, to_matrix<double>(step.at("parameters").at(k))),
                  1e-12)
            << parameters[k].name << " after step " << optimizer.steps();
    }
  }
}

/// Two parameters, one large enough for several threads.
std::vector<Parameter<float>> two_parameters() {
  std::mt19937_64 random(test_seed(3));
  return {{"layer1.weight", 1, true, random_matrix<float>(400, 300, random)},
          {"layer1.bias", 1, false, random_matrix<float>(1, 300, random)}};
}

std::vector<Matrix<float>> two_gradients(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  return {random_matrix<float>(400, 300, random), random_matrix<float>(1, 300, random)};
}

TEST(Optimizer, RestartsBitForBit) {
  for (const std::string kind : {"adam", "sgd"}) {
    OptimizerOptions options;
    options.kind = kind;
    auto through = two_parameters();
    Optimizer<float> optimizer(Cpu{}, options, through);
    for (std::uint64_t step = 0; step < 3; ++step) optimizer.step(Cpu{1}, 0.01, two_gradients(step), through);
    auto restarted = through;
    Optimizer<float> second(Cpu{}, options, restarted);
    second.state() = optimizer.state();
    second.set_steps(optimizer.steps());
    for (std::uint64_t step = 3; step < 6; ++step) {
      optimizer.step(Cpu{1}, 0.01, two_gradients(step), through);
      second.step(Cpu{2}, 0.01, two_gradients(step), restarted);
    }
    for (std::size_t k = 0; k < 2; ++k) EXPECT_TRUE(same_bits(through[k].value, restarted[k].value)) << kind;
  }
}

TEST(Optimizer, NamesItsState) {
  const auto parameters = two_parameters();
  const Optimizer<float> adam(Cpu{}, {}, parameters);
  ASSERT_EQ(adam.state().size(), 4u);
  EXPECT_EQ(adam.state()[0].name, "layer1.weight/first_moment");
  EXPECT_EQ(adam.state()[3].name, "layer1.bias/second_moment");
  OptimizerOptions options;
  options.kind = "sgd";
  const Optimizer<float> sgd(Cpu{}, options, parameters);
  ASSERT_EQ(sgd.state().size(), 2u);
  EXPECT_EQ(sgd.state()[1].name, "layer1.bias/velocity");
}

TEST(LearningRate, AgreesWithPyTorch) {
  for (const auto& json : read_fixture("schedules")) {
    TrainConfig train;
    train.lr_schedule = json.at("kind");
    train.epochs = json.at("epochs");
    train.lr_step = json.at("every");
    train.lr_decay = json.at("factor");
    // PyTorch's cosine falls to a least rate.
    const double base = json.at("base"), least = json.at("minimum");
    const auto rates = json.at("rates").get<std::vector<double>>();
    for (std::size_t epoch = 0; epoch < rates.size(); ++epoch)
      EXPECT_NEAR(least + rate_of_epoch(train, base - least, static_cast<std::int64_t>(epoch) + 1),
                  rates[epoch], 1e-14)
          << train.lr_schedule << " epoch " << epoch;
  }
}

TEST(LearningRate, WarmsUp) {
  TrainConfig train;
  train.lr_warmup = 4;
  train.epochs = 14;
  const double expected[] = {0.2, 0.4, 0.6, 0.8, 0.8, 0.8};
  for (std::int64_t epoch = 0; epoch < 6; ++epoch)
    EXPECT_DOUBLE_EQ(rate_of_epoch(train, 0.8, epoch + 1), expected[epoch]);
  train.lr_schedule = "cosine";
  EXPECT_DOUBLE_EQ(rate_of_epoch(train, 0.8, 4), 0.8);
  EXPECT_DOUBLE_EQ(rate_of_epoch(train, 0.8, 5), 0.8);
  EXPECT_DOUBLE_EQ(rate_of_epoch(train, 0.8, 10), 0.4) << "half way through the ten epochs after the warm-up";
  EXPECT_NEAR(rate_of_epoch(train, 0.8, 21), 0, 1e-16) << "does not rise again";
}

}  // namespace
}  // namespace espalier
