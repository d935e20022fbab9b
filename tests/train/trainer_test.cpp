// ranks: 1 3 4
// long ranks: 2
// Laws: training is the plain loop over the epoch's steps (one process, double precision, whole
// graph at hand): each step takes the mean gradient over its seeds, at the epoch's rate, with the
// asked decay; with train.reproducible no bit depends on the grid, nor on who owns
// which vertices.
#include "espalier/train/trainer.hpp"

#include <gtest/gtest.h>

#include <tuple>

#include "espalier/nn/cross_entropy.hpp"
#include "espalier/train/optimizer.hpp"
#include "mpi_test.hpp"
#include "train/small_training.hpp"

namespace espalier {
namespace {

struct PlainRun {
  std::vector<double> losses;
  std::vector<TensorsOf<double>> weights;
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
  Optimizer<double> optimizer(Cpu{}, options, network.parameters());
  PlainRun run;
  for (std::uint64_t epoch = 1; epoch <= static_cast<std::uint64_t>(t.epochs); ++epoch) {
    const EpochPlan plan(problem.train, config.sampler.batch_size, 1, 1, 5, epoch);
    double loss = 0;
    for (std::int64_t begin = 0; begin < plan.batches(); begin += kStep) {
      const auto end = std::min(begin + kStep, plan.batches());
      std::vector<Matrix<double>> sums, gradients, statistics = network.running_statistics();
      for (auto& statistic : statistics) std::ranges::fill(statistic.data, 0.0);
      double seeds = 0;
      std::vector<double> divisors(statistics.size(), 0.0);
      for (auto b = begin; b < end; ++b) {
        const auto batch = plan.batch(b);
        const auto minibatch = std::move(job.sampler->sample(Cpu{1}, {&batch, 1}, 5, epoch)[0]);
        Matrix<double> input(std::ssize(minibatch.vertices), problem.features.columns), dlogits;
        for (std::int64_t i = 0; i < input.rows; ++i)
          std::copy_n(problem.features.row(minibatch.vertices[static_cast<std::size_t>(i)]), input.columns,
                      input.row(i));
        std::vector<std::int32_t> labels;
        for (const auto v : batch.seeds()) labels.push_back(problem.labels[static_cast<std::size_t>(v)]);
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
        // A mean counts by its rows, a variance by one less.
        for (std::size_t k = 0; k < statistics.size(); ++k) {
          const auto divisor = static_cast<double>(minibatch.blocks[k / 2].rows) - static_cast<double>(k % 2);
          divisors[k] += divisor;
          for (std::size_t e = 0; e < statistics[k].data.size(); ++e)
            statistics[k].data[e] += divisor * network.batch_statistics()[k].data[e];
        }
      }
      for (auto& sum : sums)
        for (double& x : sum.data) x /= seeds;
      optimizer.step(Cpu{1}, rate_of_epoch(t, t.learning_rate, static_cast<std::int64_t>(epoch)), sums,
                     network.parameters());
      for (std::size_t k = 0; k < statistics.size(); ++k)
        for (std::size_t e = 0; e < statistics[k].data.size(); ++e) {
          double& running = network.running_statistics()[k].data[e];
          if (divisors[k] > 0) running = 0.9 * running + 0.1 * statistics[k].data[e] / divisors[k];
        }
    }
    run.losses.push_back(loss / static_cast<double>(problem.train.size()));
    run.weights.push_back(weights_of(network));
  }
  return run;
}

TEST(Trainer, IsThePlainLoopOnEveryGrid) {
  auto problem = small_problem(66, 5, 3, 20);
  ASSERT_NE(problem.train.size() % 4, 0u) << "a short last batch";
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
        problem.owned = reproducible ? Owned::kAtRandom : kAllOwned[c % 3];
        const auto run = train(grid, problem, config);
        for (std::size_t epoch = 0; epoch < 4; ++epoch) {
          EXPECT_NEAR(*run.epochs[epoch].loss, expected.losses[epoch], 1e-5);
          for (std::size_t k = 0; k < expected.weights[epoch].size(); ++k)
            EXPECT_LT(largest_difference(run.weights[epoch][k], expected.weights[epoch][k]), 1e-5)
                << "tensor " << k << " after epoch " << epoch + 1;
          if (!reproducible) continue;
          EXPECT_EQ(*run.epochs[epoch].loss, *by_one.epochs[epoch].loss);
          EXPECT_EQ(run.epochs[epoch].counts.digest, by_one.epochs[epoch].counts.digest);
          EXPECT_EQ(run.epochs[epoch].valid->find("macro_f1"), by_one.epochs[epoch].valid->find("macro_f1"));
          EXPECT_TRUE(same_weights(run.weights[epoch], by_one.weights[epoch]))
              << "bits of epoch " << epoch + 1;
        }
      }
    }
  }
}

// Of more than 64 KiB in each of two pieces; batches of a step are fewer than ranks, or more.
TEST(Trainer, ReducesInPiecesWithTheSameBits) {
  const auto problem = small_problem(40, 64, 3, 20);
  auto config = config_of("sage", "none");
  config.model.hidden = 128;
  config.train.epochs = 2;
  const Grid alone(test_world().split(test_world().rank(), 0), 1), grid(test_world(), 1);
  const auto by_one = train(alone, problem, config);
  const auto shape = network_shape(config.model, InputShape(64), problem.classes);
  const auto pieces = reduction_pieces(gradient_groups(shape), grid.ranks());
  EXPECT_EQ(pieces.size(), grid.ranks() > 1 ? 2u : 1u);
  for (const bool overlap : {false, true}) {
    config.run.overlap = overlap;
    const auto run = train(grid, problem, config);
    for (std::size_t epoch = 0; epoch < 2; ++epoch) {
      EXPECT_EQ(*run.epochs[epoch].loss, *by_one.epochs[epoch].loss);
      EXPECT_TRUE(same_weights(run.weights[epoch], by_one.weights[epoch])) << "bits of epoch " << epoch + 1;
    }
  }
}

}  // namespace
}  // namespace espalier
