// The hook of a step that keeps an exponential average of the weights (train.average_weights),
// which evaluations use and the best epoch keeps (Polyak and Juditsky 1992; as networks use it,
// Tarvainen and Valpola 2017). After step t, from 0:
//
//     average = d average + (1 - d) weights       d = min(decay, (1 + t) / (10 + t))
//
// Early in training the average forgets faster, as weights change faster then. Running statistics,
// and trainable embeddings, are those of the moment.
#pragma once

#include <algorithm>
#include <utility>

#include "espalier/base/arrays.hpp"
#include "espalier/dense/tensor_updates.hpp"
#include "espalier/train/planned_hooks.hpp"
#include "espalier/train/step_hook.hpp"

namespace espalier {

template <class Space>
class AverageWeightsOn final : public StepHookOn<Space> {
 public:
  AverageWeightsOn(const Space& space, double decay, const Network<float, Space>& network)
      : decay_(decay), network_(network), averages_(network.like_parameters(/*apart=*/true)) {
    begin_anew(space);
  }

  void end(const Space&, std::int64_t number) override { step_ = static_cast<double>(number); }
  void update(const Space& space, std::int64_t, Network<float, Space>& network) override {
    const double decay = std::min(decay_, (1 + step_) / (10 + step_));
    for (std::size_t k = 0; k < averages_.size(); ++k)
      blend(space, 1 - decay, network.parameters()[k].value, averages_[k]);
  }

  void before_evaluation(const Space&, Network<float, Space>& network) override { exchange(network); }
  void after_evaluation(const Space&, Network<float, Space>& network) override { exchange(network); }

  std::vector<TensorPlaceOn<Space>> tensors(Network<float, Space>& network) override {
    std::vector<TensorPlaceOn<Space>> all;
    for (std::size_t k = 0; k < averages_.size(); ++k)
      all.push_back({.name = name_of(k, network),
                     .tensor = &averages_[k],
                     .of_weights = false,
                     .may_be_missing = true});
    return all;
  }
  std::string restore(const Space& space, std::int64_t next, bool, SavedTensors& tensors) override {
    if (averages_.empty() || tensors.has(name_of(0, network_))) return {};
    begin_anew(space);
    return next == 0 ? "" : "no average of weights: it begins with the weights of that moment";
  }

 private:
  static std::string name_of(std::size_t k, const Network<float, Space>& network) {
    return "average/" + network.parameters()[k].name;
  }
  void begin_anew(const Space& space) {
    for (std::size_t k = 0; k < averages_.size(); ++k) {
      const auto& weights = network_.parameters()[k].value.data;
      copy_within(space, weights.data(), std::ssize(weights), averages_[k].data.data());
    }
  }
  void exchange(Network<float, Space>& network) {
    for (std::size_t k = 0; k < averages_.size(); ++k) std::swap(averages_[k], network.parameters()[k].value);
  }

  double decay_, step_ = 0;  // of the job
  const Network<float, Space>& network_;
  std::vector<Matrix<float, Space>> averages_;
};

template <class Space>
std::unique_ptr<StepHookOn<Space>> make_average_weights(const HooksOfJob<Space>& of) {
  const double decay = of.job.config.train.average_weights;
  return decay > 0 ? std::make_unique<AverageWeightsOn<Space>>(of.space, decay, of.network) : nullptr;
}

inline PlannedHook plan_average_weights(const PlannedTraining& training, double) {
  if (training.config.train.average_weights == 0) return {};
  return {.kept = {{"average of the weights", 4 * training.parameters}}};
}

}  // namespace espalier
