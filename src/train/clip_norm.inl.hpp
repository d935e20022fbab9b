// The hook of a step that clips gradients (train.clip_norm): those of all weights as one
// vector, when they are the mean over the step, the same on every rank. Trainable embeddings
// are not clipped.
#pragma once

#include "espalier/dense/tensor_updates.hpp"
#include "espalier/train/step_hook.hpp"

namespace espalier {

template <class Space>
class ClipNormOn final : public StepHookOn<Space> {
 public:
  explicit ClipNormOn(double most) : most_(most) {}

  void reduced(const Space& space, std::int64_t, typename StepHookOn<Space>::Tensors& gradients) override {
    clip_to_norm(space, most_, gradients, scratch_);
  }

 private:
  double most_;
  Array<Space, double> scratch_;
};

template <class Space>
std::unique_ptr<StepHookOn<Space>> make_clip_norm(const HooksOfJob<Space>& of) {
  const double most = of.job.config.train.clip_norm;
  return most > 0 ? std::make_unique<ClipNormOn<Space>>(most) : nullptr;
}

}  // namespace espalier
