// The hook of a step for batch normalisation: running means and variances, by the rows of all of a
// step's minibatches, over all ranks.
#pragma once

#include "espalier/train/gradient_reduction.hpp"
#include "espalier/train/step_hook.hpp"

namespace espalier {

template <class Space>
class RunningStatisticsOn final : public StepHookOn<Space> {
  using typename StepHookOn<Space>::Pass;
  using typename StepHookOn<Space>::Tensors;

 public:
  RunningStatisticsOn(const Space& space, const TrainingJobOn<Space>& job,
                      const Network<float, Space>& network)
      : reduction_(space, job.grid.world(), job.config.train.reproducible) {
    for (const auto& statistic : network.running_statistics()) sums_.emplace_back(1, statistic.columns);
    sums_.emplace_back(1, std::ssize(sums_));
  }

  void note(const Space& space, const Pass&, Network<float, Space>& network) override {
    network.weigh_statistics(space, weighted_);
    std::vector<const Matrix<float, Space>*> of_minibatch;
    for (const auto& statistic : weighted_) of_minibatch.push_back(&statistic);
    reduction_.add(of_minibatch);
  }
  void reduced(const Space&, std::int64_t minibatches, Tensors&) override {
    std::vector<Matrix<float, Space>*> sums;
    for (auto& sum : sums_) sums.push_back(&sum);
    reduction_.finish(minibatches, sums);
  }
  void update(const Space& space, std::int64_t, Network<float, Space>& network) override {
    network.update_running_statistics(space, sums_);
  }

  std::vector<TensorPlaceOn<Space>> tensors(Network<float, Space>& network) override {
    std::vector<TensorPlaceOn<Space>> all;
    auto& statistics = network.running_statistics();
    for (std::size_t k = 0; k < statistics.size(); ++k)
      all.push_back({.name = "statistics/" + network.statistic_names()[k],
                     .tensor = &statistics[k],
                     .former_name = "statistics/" + std::to_string(k)});
    return all;
  }

 private:
  GradientReductionOn<Space> reduction_;
  std::vector<Matrix<float, Space>> weighted_, sums_;  // of a minibatch, of the step
};

template <class Space>
std::unique_ptr<StepHookOn<Space>> make_running_statistics(const HooksOfJob<Space>& of) {
  if (of.network.running_statistics().empty()) return nullptr;
  return std::make_unique<RunningStatisticsOn<Space>>(of.space, of.job, of.network);
}

}  // namespace espalier
