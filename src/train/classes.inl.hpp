// The task "classes", for every space. Softmax and cross-entropy (nn/cross_entropy.hpp), averaged
// over the seeds of a step; with train.class_weights or train.label_smoothing the weighted one,
// where the mean divides by the sum of the seeds' weights; accuracy and macro-F1 from counts that
// ranks add (metrics.hpp).
#pragma once

#include "espalier/base/arrays.hpp"
#include "espalier/nn/cross_entropy.hpp"
#include "espalier/train/classes.hpp"
#include "espalier/train/metrics.hpp"
#include "vertex_task.hpp"

namespace espalier {

// A matrix of so many classes is counted and reported.
inline constexpr std::int64_t kMostConfusedClasses = 512;

template <class Space>
class ClassesOn : public VertexTaskOn<Space> {
 public:
  ClassesOn(const Space& space, const Grid& grid, const ClassTargets& targets, const TrainConfig& train)
      : VertexTaskOn<Space>(grid, targets, targets.train_labels),
        targets_(targets),
        smoothing_(train.label_smoothing),
        weights_(static_cast<std::size_t>(targets.outputs), 1.0),
        weighted_(train.class_weights == "balanced") {
    if (weighted_) weights_ = balanced_weights(targets.train_labels, targets.outputs);
    space_weights_ = copy_to<double>(space, weights_);
  }

  void loss(const Space& space, const EpochPlan& plan, std::int64_t batch, const Matrix<float, Space>& logits,
            const TaskTensorsOn<Space>&, double scale, Matrix<float, Space>& dlogits, double* loss) override {
    const auto examples = plan.batch(batch);
    const auto labels = examples.tags();
    const bool plain = !weighted_ && smoothing_ == 0;
    if constexpr (std::is_same_v<Space, Cpu>) {
      *loss = plain ? softmax_cross_entropy(space, logits, labels, scale, dlogits)
                    : weighted_cross_entropy(space, logits, labels, weights_, smoothing_, scale, dlogits);
    } else {
      upload(space, labels, labels_);
      if (plain)
        softmax_cross_entropy(space, logits, labels_.data(), scale, dlogits, loss);
      else
        weighted_cross_entropy(space, logits, labels_.data(), space_weights_.data(), smoothing_, scale,
                               dlogits, loss);
    }
  }

  // One reduction for all splits.
  Evaluation judge(const Space& space, const Matrix<float, Space>& logits,
                   std::span<const Parameter<float, Space>>) const override {
    std::vector<std::int64_t> counts;
    for (const auto split : {Split::kTrain, Split::kValid, Split::kTest}) {
      const auto share = class_counts(space, logits, labels_of(split));
      counts.insert(counts.end(), share.begin(), share.end());
    }
    this->world().all_reduce(std::span<std::int64_t>(counts), Reduction::kSum, "evaluate");
    const auto of_split = [&](std::size_t s) {
      const auto length = counts.size() / 3;
      return metrics_of(std::span<const std::int64_t>(counts).subspan(s * length, length));
    };
    Evaluation evaluation{of_split(0), of_split(1), of_split(2), {}};
    if (targets_.outputs <= kMostConfusedClasses)
      evaluation.confusion = confusion_counts(space, logits, labels_of(Split::kTest));
    return evaluation;
  }

 private:
  double add_weights(double sum, std::span<const std::int32_t> labels) const override {
    if (!weighted_) return sum + static_cast<double>(std::ssize(labels));
    for (const auto label : labels) sum += weights_[label];
    return sum;
  }

  // Of the vertices that this rank judges: those outside of the split are hidden.
  std::vector<std::int32_t> labels_of(Split split) const {
    std::vector<std::int32_t> labels(targets_.judged_rows(), -1);
    for (const auto place : targets_.judged[static_cast<std::size_t>(split)])
      labels[place] = targets_.judged_labels[place];
    return labels;
  }

  static Metrics metrics_of(std::span<const std::int64_t> counts) {
    std::int64_t judged = 0;
    // tp + fn
    for (std::size_t c = 0; c < counts.size(); c += 3) judged += counts[c] + counts[c + 2];
    return {{{"accuracy", accuracy(counts)}, {"macro_f1", macro_f1(counts)}}, judged};
  }

  const ClassTargets& targets_;
  double smoothing_;
  std::vector<double> weights_;  ///< of the classes
  bool weighted_;                ///< are they other than 1?
  Array<Space, double> space_weights_;
  Array<Space, std::int32_t> labels_;  ///< of the batch under way, on a GPU
};

}  // namespace espalier
