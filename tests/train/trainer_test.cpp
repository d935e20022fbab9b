// ranks: 1 2 3 4
// Laws: training is the plain loop over the epoch's steps (one process, double precision, whole graph at hand): each
// step takes the mean gradient over its seeds, at the epoch's rate, with the asked decay; with train.reproducible no
// bit depends on the grid. The weights of the first best validation metric stay; patience counts evaluations.
#include "espalier/train/trainer.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "dense/random_matrices.hpp"
#include "espalier/nn/softmax_cross_entropy.hpp"
#include "mpi_test.hpp"
#include "train/small_job.hpp"

namespace espalier {
namespace {

constexpr std::int64_t kStep = 3;  // batches per step

template <class T>
using Weights = std::vector<Matrix<T>>;  // all parameters, then all running statistics

template <class T>
Weights<T> weights_of(const Network<T>& network) {
  Weights<T> weights;
  for (const auto& parameter : network.parameters()) weights.push_back(parameter.value);
  for (const auto& statistic : network.running_statistics()) weights.push_back(statistic);
  return weights;
}

bool same_weights(const Weights<float>& a, const Weights<float>& b) {
  bool same = a.size() == b.size();
  for (std::size_t k = 0; same && k < a.size(); ++k) same = same_bits(a[k], b[k]);
  return same;
}

// 3 layers, batches of 4 of 31 training vertices (small_problem decides), so that last batch and last step are short.
Config config_of(const std::string& kind, const std::string& normalize) {
  Config config;
  config.sampler.fanout = {3, 2, 2};
  config.sampler.batch_size = 4;
  config.model.kind = kind;
  config.model.hidden = 6;
  config.model.layers = 3;
  config.model.dropout = 0.25;
  config.model.normalize = normalize;
  config.train.epochs = 4;
  config.train.optimizer = "sgd";
  config.train.learning_rate = 0.1;
  config.train.reproducible = true;
  config.train.seed = 5;
  return config;
}

struct Run {
  TrainingResult result;
  std::vector<EpochReport> epochs;
  std::vector<Weights<float>> weights;  // after each epoch
  Weights<float> last;                  // what train() leaves
  Evaluation evaluation_of_last;
};

Run train(const Grid& grid, const SmallProblem& problem, const Config& config) {
  const SmallJob job(grid, problem, config.model.kind, config.sampler.fanout, 1 << 20);
  Trainer trainer(Cpu{1},
                  {grid, config, *job.sampler, job.features, job.targets, job.evaluator, /*bulk=*/5, kStep});
  Run run;
  run.result = trainer.train({nullptr, [&](const EpochReport& epoch) {
                                run.epochs.push_back(epoch);
                                run.weights.push_back(weights_of(trainer.network()));
                              }});
  run.last = weights_of(trainer.network());
  run.evaluation_of_last = job.evaluator.evaluate(Cpu{1}, trainer.network());
  return run;
}

double plain_rate(const TrainConfig& t, std::int64_t epoch) {  // epoch counts from 1
  if (epoch <= t.lr_warmup)
    return t.learning_rate * static_cast<double>(epoch) / static_cast<double>(t.lr_warmup);
  const auto past = static_cast<double>(epoch - 1 - t.lr_warmup);
  if (t.lr_schedule == "step")
    return t.learning_rate * std::pow(t.lr_decay, std::floor(past / static_cast<double>(t.lr_step)));
  if (t.lr_schedule == "cosine")
    return t.learning_rate / 2 *
           (1 + std::cos(std::numbers::pi * past / static_cast<double>(t.epochs - t.lr_warmup)));
  return t.learning_rate;
}

struct PlainRun {
  std::vector<double> losses;
  std::vector<Weights<double>> weights;
};

// The oracle. `alone`: a grid of this rank only.
PlainRun train_plainly(const Grid& alone, const SmallProblem& problem, const Config& config) {
  const auto& [t, m] = std::tie(config.train, config.model);
  const SmallJob job(alone, problem, m.kind, config.sampler.fanout, 1 << 20, Topology::kReplicated);
  const double input_dropout = m.kind == "gcn" ? m.dropout : 0;
  Network<double> network(
      {m.kind, 3, problem.features.columns, m.hidden, problem.classes, m.dropout, input_dropout, m.normalize},
      static_cast<std::uint64_t>(t.seed));
  OptimizerOptions options;
  options.kind = t.optimizer;
  options.momentum = t.momentum;
  options.weight_decay = t.weight_decay;
  options.weight_decay_on = t.weight_decay_on;
  Optimizer<double> optimizer(options, network.parameters());
  PlainRun run;
  for (std::uint64_t epoch = 1; epoch <= static_cast<std::uint64_t>(t.epochs); ++epoch) {
    const EpochPlan plan(problem.train, config.sampler.batch_size, 1, 1, 5, epoch);
    double loss = 0;
    for (std::int64_t begin = 0; begin < plan.batches(); begin += kStep) {
      const auto end = std::min(begin + kStep, plan.batches());
      std::vector<Matrix<double>> sums, gradients, statistics = network.running_statistics();
      for (auto& statistic : statistics) std::ranges::fill(statistic.data, 0.0);
      double seeds = 0;
      for (auto b = begin; b < end; ++b) {
        const SeedBatch batch = {b, plan.seeds(b)};
        const auto minibatch = std::move(job.sampler->sample(Cpu{1}, {&batch, 1}, 5, epoch)[0]);
        Matrix<double> input(std::ssize(minibatch.vertices), problem.features.columns), dlogits;
        for (std::int64_t i = 0; i < input.rows; ++i)
          std::copy_n(problem.features.row(minibatch.vertices[static_cast<std::size_t>(i)]), input.columns,
                      input.row(i));
        std::vector<std::int32_t> labels;
        for (const auto v : batch.seeds) labels.push_back(problem.labels[static_cast<std::size_t>(v)]);
        const Pass pass = {5, epoch, static_cast<std::uint64_t>(b)};
        loss += softmax_cross_entropy<double>(Cpu{1}, network.forward(Cpu{1}, minibatch.blocks, input, pass),
                                              labels, 1.0, dlogits);
        network.backward(Cpu{1}, minibatch.blocks, input, pass, dlogits, gradients);
        seeds += static_cast<double>(labels.size());
        if (sums.empty())
          sums = gradients;
        else
          for (std::size_t k = 0; k < sums.size(); ++k)
            for (std::size_t e = 0; e < sums[k].data.size(); ++e) sums[k].data[e] += gradients[k].data[e];
        for (std::size_t k = 0; k < statistics.size(); ++k)
          for (std::size_t e = 0; e < statistics[k].data.size(); ++e)
            statistics[k].data[e] += network.batch_statistics()[k].data[e] / static_cast<double>(end - begin);
      }
      for (auto& sum : sums)
        for (double& x : sum.data) x /= seeds;
      optimizer.step(Cpu{1}, plain_rate(t, static_cast<std::int64_t>(epoch)), sums, network.parameters());
      for (std::size_t k = 0; k < statistics.size(); ++k)
        for (std::size_t e = 0; e < statistics[k].data.size(); ++e) {
          double& running = network.running_statistics()[k].data[e];
          running = 0.9 * running + 0.1 * statistics[k].data[e];
        }
    }
    run.losses.push_back(loss / static_cast<double>(problem.train.size()));
    run.weights.push_back(weights_of(network));
  }
  return run;
}

TEST(Trainer, IsThePlainLoopOnEveryGrid) {
  const auto problem = small_problem(61, 5, 3, 20);
  ASSERT_EQ(problem.train.size() % 4, 3u) << "a short last batch";
  ASSERT_NE((problem.train.size() + 3) / 4 % kStep, 0u) << "a short last step";
  std::vector<Config> configs = {config_of("sage", "none"), config_of("gcn", "batch"),
                                 config_of("sage", "layer")};
  configs[0].train.lr_schedule = "step";
  configs[0].train.lr_step = 2;
  configs[0].train.weight_decay = 0.05;
  configs[0].train.weight_decay_on = "first";
  configs[1].train.lr_schedule = "cosine";
  configs[1].train.lr_warmup = 1;
  configs[1].train.weight_decay = 0.05;
  configs[1].train.momentum = 0.5;
  configs[2].train.optimizer = "adam";
  configs[2].train.learning_rate = 0.003;
  const Grid alone(test_world().split(test_world().rank(), 0), 1);
  for (auto& config : configs) {
    const auto expected = train_plainly(alone, problem, config);
    const auto by_one = train(alone, problem, config);
    for (const int c : divisors(test_world().size())) {
      const Grid grid(test_world(), c);
      for (const bool reproducible : {true, false}) {
        SCOPED_TRACE(
            fmt::format("{} {} c {} {}", config.model.kind, config.model.normalize, c, reproducible));
        config.train.reproducible = reproducible;
        const auto run = train(grid, problem, config);
        for (std::size_t epoch = 0; epoch < 4; ++epoch) {
          EXPECT_NEAR(*run.epochs[epoch].loss, expected.losses[epoch], 1e-5);
          for (std::size_t k = 0; k < expected.weights[epoch].size(); ++k)
            EXPECT_LT(largest_difference(run.weights[epoch][k], expected.weights[epoch][k]), 1e-4)
                << "tensor " << k << " after epoch " << epoch + 1;
          if (!reproducible) continue;
          EXPECT_EQ(*run.epochs[epoch].loss, *by_one.epochs[epoch].loss);
          EXPECT_EQ(run.epochs[epoch].counts.digest, by_one.epochs[epoch].counts.digest);
          EXPECT_EQ(run.epochs[epoch].valid->macro_f1, by_one.epochs[epoch].valid->macro_f1);
          EXPECT_TRUE(same_weights(run.weights[epoch], by_one.weights[epoch]))
              << "bits of epoch " << epoch + 1;
        }
      }
    }
  }
}

// Labels are noise, so the validation accuracy goes up and down.
Config noisy_config() {
  auto config = config_of("sage", "batch");
  config.train.learning_rate = 0.5;
  config.train.epochs = 9;
  return config;
}

// The epoch whose weights must stay, and when `patience` evaluations in a row without a gain are over (0: never).
std::pair<std::int64_t, std::int64_t> plain_best(const std::vector<EpochReport>& epochs,
                                                 std::int64_t patience) {
  std::int64_t best = 0, waited = 0;
  double metric = -1;
  for (const auto& epoch : epochs) {
    if (!epoch.valid) continue;
    const bool gain = epoch.valid->accuracy > metric;
    waited = gain ? 0 : waited + 1;
    if (gain) best = epoch.epoch, metric = epoch.valid->accuracy;
    if (patience > 0 && waited == patience) return {best, epoch.epoch};
  }
  return {best, 0};
}

TEST(Trainer, EvaluatesWhenDueKeepsTheBestAndStopsEarly) {
  const auto problem = small_problem(61, 5, 3, 20);
  const Grid grid(test_world(), 1);
  bool best_was_not_last = false, stopped = false;
  for (const std::int64_t every : {1, 2, 0}) {
    auto config = noisy_config();
    config.train.eval_every = every;
    const auto whole = train(grid, problem, config);
    for (const std::int64_t patience : {0, 1, 2, 3}) {
      SCOPED_TRACE(fmt::format("every {} patience {}", every, patience));
      config.train.early_stop = patience;
      const auto run = train(grid, problem, config);
      for (const auto& epoch : run.epochs)
        EXPECT_EQ(epoch.valid.has_value(), epoch.epoch == 9 || (every > 0 && epoch.epoch % every == 0))
            << epoch.epoch;
      const auto [best, stop] = plain_best(whole.epochs, patience);
      EXPECT_EQ(run.result.best_epoch, best);
      EXPECT_EQ(std::ssize(run.epochs), stop > 0 ? stop : 9);
      if (stop < 9) EXPECT_EQ(run.result.stopped_early, stop > 0);
      EXPECT_TRUE(same_weights(run.last, whole.weights[static_cast<std::size_t>(best - 1)]));
      EXPECT_EQ(run.result.test.value().accuracy, run.evaluation_of_last.test.accuracy);
      EXPECT_EQ(run.evaluation_of_last.valid.accuracy,
                whole.epochs[static_cast<std::size_t>(best - 1)].valid.value().accuracy);
      best_was_not_last |= best < std::ssize(run.epochs) && !same_weights(run.last, run.weights.back());
      stopped |= stop > 0 && stop < 9;
    }
  }
  EXPECT_TRUE(best_was_not_last) << "the case must have told something";
  EXPECT_TRUE(stopped);
}

TEST(Trainer, WithoutValidationTheLastWeightsStay) {
  auto problem = small_problem(61, 5, 3, 20);
  problem.valid.clear();
  auto config = noisy_config();
  config.train.early_stop = 1;
  const auto run = train(Grid(test_world(), 1), problem, config);
  EXPECT_EQ(run.result.best_epoch, 9);
  EXPECT_FALSE(run.epochs.back().valid.has_value());
  EXPECT_TRUE(same_weights(run.last, run.weights.back()));
}

TEST(Trainer, RefusesToGoOnWithALossThatIsNotFinite) {
  auto config = config_of("sage", "none");
  config.train.learning_rate = 1e30;
  EXPECT_THROW(train(Grid(test_world(), 1), small_problem(61, 5, 3, 20), config), UserError);
}

}  // namespace
}  // namespace espalier
