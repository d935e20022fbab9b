// The task "labels", for every space. Sigmoid and cross-entropy (nn/cross_entropy.hpp),
// averaged over the known labels of a step:
//
//     loss = sum over seeds i, labels j with y_ij known of loss_ij / number of such (i, j)
//
// which depends on the step's seeds only, not on the ranks that keep them. Evaluated by rankings
// and F1 of each label (label_evaluator.hpp).
#pragma once

#include <optional>

#include "espalier/nn/cross_entropy.hpp"
#include "espalier/train/on_host.hpp"
#include "label_evaluator.hpp"
#include "vertex_task.hpp"

namespace espalier {

/// The place of each training vertex in the list of them: its label index.
struct TrainingPlaces {
  std::vector<std::int32_t> places;
  explicit TrainingPlaces(const Targets& targets);
};

// Keeps the rows of each split, on the host.
template <class Space>
class LabelRows final : public RowEvaluatorOn<Space> {
 public:
  LabelRows(const LabelTargets& targets, const LabelEvaluator& evaluator)
      : targets_(targets), evaluator_(evaluator) {
    for (std::size_t split = 0; split < kept_.size(); ++split)
      kept_[split].resize(std::ssize(targets.evaluated[split]), targets.outputs);
  }

  void take(const Space& space, std::int64_t first, Matrix<float, Space>& rows) override {
    Buffer<float> copy;
    const float* on_host = nullptr;
    for (std::size_t split = 0; split < kept_.size(); ++split)
      for (const auto place : targets_.evaluated_among(split, first, rows.rows)) {
        if (on_host == nullptr) on_host = rows_on_host(space, rows, copy);
        std::copy_n(on_host + (place - first) * rows.columns, rows.columns,
                    kept_[split].row(taken_[split]++));
      }
  }

  Evaluation finish(const Space& space, std::span<const Parameter<float, Space>>) override {
    return evaluator_.evaluate(kept_, host_threads(space));
  }

 private:
  const LabelTargets& targets_;
  const LabelEvaluator& evaluator_;
  std::array<Matrix<float>, 3> kept_;
  std::array<std::int64_t, 3> taken_ = {};
};

template <class Space>
class LabelsOn : TrainingPlaces, public VertexTaskOn<Space> {
 public:
  LabelsOn(const Space&, const Grid& grid, const LabelTargets& targets, const TrainConfig&)
      : TrainingPlaces(targets),
        VertexTaskOn<Space>(grid, targets, places),
        targets_(targets),
        evaluator_(grid, targets) {
    for (std::int64_t i = 0; i < targets.train_labels.rows; ++i) {
      const auto* row = targets.train_labels.row(i);
      known_.push_back(static_cast<std::int32_t>(
          std::count_if(row, row + targets.outputs, [](std::uint8_t label) { return label <= 1; })));
    }
  }

  void loss(const Space& space, const EpochPlan& plan, std::int64_t batch, const Matrix<float, Space>& logits,
            const TaskTensorsOn<Space>&, double scale, Matrix<float, Space>& dlogits, double* loss) override {
    const auto examples = plan.batch(batch);
    batch_labels_.resize(examples.seeds().size() * static_cast<std::size_t>(targets_.outputs));
    auto to = batch_labels_.begin();
    for (const auto place : examples.label_indices())
      to = place < 0 ? std::fill_n(to, targets_.outputs, std::uint8_t{kUnknownLabel})
                     : std::copy_n(targets_.train_labels.row(place), targets_.outputs, to);
    if constexpr (std::is_same_v<Space, Cpu>) {
      *loss = sigmoid_cross_entropy(space, logits, batch_labels_, scale, dlogits);
    } else {
      upload(space, std::span<const std::uint8_t>(batch_labels_), labels_);
      sigmoid_cross_entropy(space, logits, labels_.data(), scale, dlogits, loss);
    }
  }

  std::unique_ptr<RowEvaluatorOn<Space>> evaluator() const override {
    return std::make_unique<LabelRows<Space>>(targets_, evaluator_);
  }

 private:
  double add_weights(double sum, std::span<const std::int32_t> label_indices) const override {
    for (const auto place : label_indices) sum += known_[place];
    return sum;
  }

  const LabelTargets& targets_;
  LabelEvaluator evaluator_;
  Buffer<std::int32_t> known_;         ///< labels of each training vertex
  Buffer<std::uint8_t> batch_labels_;  ///< of the batch under way
  Array<Space, std::uint8_t> labels_;  ///< the same on a GPU
};

}  // namespace espalier
