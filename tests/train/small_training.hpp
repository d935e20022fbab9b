// Trainings of a small problem on a grid, with what they did after every epoch.
#pragma once

#include "dense/random_matrices.hpp"
#include "espalier/train/trainer.hpp"
#include "mpi_test.hpp"
#include "train/small_job.hpp"

namespace espalier {

constexpr std::int64_t kStep = 3;  // batches per step

template <class T>
using TensorsOf = std::vector<Matrix<T>>;  // all parameters, then all running statistics

template <class T>
TensorsOf<T> weights_of(const Network<T>& network) {
  TensorsOf<T> weights;
  for (const auto& parameter : network.parameters()) weights.push_back(parameter.value);
  for (const auto& statistic : network.running_statistics()) weights.push_back(statistic);
  return weights;
}

inline bool same_weights(const TensorsOf<float>& a, const TensorsOf<float>& b) {
  bool same = a.size() == b.size();
  for (std::size_t k = 0; same && k < a.size(); ++k) same = same_bits(a[k], b[k]);
  return same;
}

// 3 layers, batches of 4.
inline Config config_of(const std::string& kind, const std::string& normalize) {
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
  std::vector<TensorsOf<float>> weights;  // after each epoch
  TensorsOf<float> last;                  // what train() leaves
};

inline Run train(const Grid& grid, const SmallProblem& problem, const Config& config, std::int64_t bulk = 5,
                 std::int64_t batches_per_step = kStep, Topology topology = Topology::kPartitioned) {
  const SmallJob job(grid, problem, config.model.kind, config.sampler.fanout, 1 << 20, topology, nullptr,
                     config.train);
  Trainer trainer(Cpu{1}, {grid, config, *job.sampler, job.input, *job.task, job.evaluator, bulk,
                           batches_per_step, nullptr});
  Run run;
  run.result = trainer.train({nullptr, [&](const EpochReport& epoch) {
                                run.epochs.push_back(epoch);
                                run.weights.push_back(weights_of(trainer.network()));
                              }});
  run.last = weights_of(trainer.network());
  EXPECT_FALSE(run.result.diverged.has_value());
  return run;
}

}  // namespace espalier
