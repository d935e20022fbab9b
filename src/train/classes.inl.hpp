// The task "classes", for every space. Softmax and cross-entropy (nn/cross_entropy.hpp), averaged
// over the seeds of a step; with train.class_weights or train.label_smoothing the weighted one,
// where the mean divides by the sum of the seeds' weights; accuracy and macro-F1 from counts that
// ranks add (metrics.hpp).
#pragma once

#include <algorithm>
#include <functional>

#include "espalier/base/arrays.hpp"
#include "espalier/nn/cross_entropy.hpp"
#include "espalier/train/metrics.hpp"
#include "espalier/train/targets.hpp"
#include "vertex_task.hpp"

namespace espalier {

// A matrix of so many classes is counted and reported.
inline constexpr std::int64_t kMostConfusedClasses = 512;

// Counts, chunk by chunk; one reduction for all splits.
template <class Space>
class ClassEvaluator final : public RowEvaluatorOn<Space> {
 public:
  ClassEvaluator(const Communicator& world, const ClassTargets& targets)
      : world_(world),
        targets_(targets),
        counts_(static_cast<std::size_t>(9 * targets.outputs)),
        confusion_(static_cast<std::size_t>(
            targets.outputs <= kMostConfusedClasses ? targets.outputs * targets.outputs : 0)) {}

  void take(const Space& space, std::int64_t first, Matrix<float, Space>& rows) override {
    for (std::size_t split = 0; split < 3; ++split) {
      const auto places = targets_.evaluated_among(split, first, rows.rows);
      if (places.empty()) continue;
      labels_.assign(static_cast<std::size_t>(rows.rows), -1);  // -1: not of the split
      for (const auto place : places) labels_[place - first] = targets_.evaluated_labels[place];
      add(class_counts(space, rows, labels_), of_split(split));
      if (split == static_cast<std::size_t>(Split::kTest) && !confusion_.empty())
        add(confusion_counts(space, rows, labels_), confusion_);
    }
  }

  Evaluation finish(const Space&, std::span<const Parameter<float, Space>>) override {
    world_.all_reduce(std::span<std::int64_t>(counts_), Reduction::kSum, "evaluate");
    return {metrics_of(of_split(0)), metrics_of(of_split(1)), metrics_of(of_split(2)), confusion_};
  }

 private:
  std::span<std::int64_t> of_split(std::size_t split) {
    return std::span(counts_).subspan(split * counts_.size() / 3, counts_.size() / 3);
  }

  static void add(const std::vector<std::int64_t>& counts, std::span<std::int64_t> to) {
    std::ranges::transform(counts, to, to.begin(), std::plus());
  }

  static Metrics metrics_of(std::span<const std::int64_t> counts) {
    std::int64_t evaluated = 0;
    // tp + fn
    for (std::size_t c = 0; c < counts.size(); c += 3) evaluated += counts[c] + counts[c + 2];
    return {{{"accuracy", accuracy(counts)}, {"macro_f1", macro_f1(counts)}}, evaluated};
  }

  const Communicator& world_;
  const ClassTargets& targets_;
  std::vector<std::int64_t> counts_;     ///< class_counts of each split
  std::vector<std::int64_t> confusion_;  ///< of the test split
  std::vector<std::int32_t> labels_;     ///< of the chunk
};

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
    const auto labels = examples.label_indices();
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

  std::unique_ptr<RowEvaluatorOn<Space>> evaluator() const override {
    return std::make_unique<ClassEvaluator<Space>>(this->world(), targets_);
  }

 private:
  double add_weights(double sum, std::span<const std::int32_t> labels) const override {
    if (!weighted_) return sum + static_cast<double>(std::ssize(labels));
    for (const auto label : labels) sum += weights_[label];
    return sum;
  }

  const ClassTargets& targets_;
  double smoothing_;
  std::vector<double> weights_;  ///< of the classes
  bool weighted_;                ///< are they other than 1?
  Array<Space, double> space_weights_;
  Array<Space, std::int32_t> labels_;  ///< of the batch under way, on a GPU
};

}  // namespace espalier
