// The task "links", for every space. Scores of a batch's
// links and negatives (nn/link_decoder.hpp), a loss of both (nn/link_losses.hpp), averaged over the
// links of a step; ranks on the host (link_evaluator.hpp).
#pragma once

#include "espalier/base/arrays.hpp"
#include "espalier/nn/link_decoder.hpp"
#include "espalier/nn/link_losses.hpp"
#include "espalier/train/links.hpp"
#include "espalier/train/on_host.hpp"
#include "link_evaluator.hpp"

namespace espalier {

LinkScore link_score_of(const TrainConfig& train);
LinkLoss link_loss_of(const TrainConfig& train);

// Keeps all rows: any vertex may be a candidate.
template <class Space>
class EvaluatedLinkRows final : public RowEvaluatorOn<Space> {
 public:
  EvaluatedLinkRows(const LinkTargets& targets, const LinkEvaluator& evaluator)
      : evaluator_(evaluator), kept_(targets.evaluated_rows(), targets.outputs) {}

  void take(const Space& space, std::int64_t first, Matrix<float, Space>& rows) override {
    kept_.take(space, first, rows);
  }
  Evaluation finish(const Space& space, std::span<const Parameter<float, Space>> tensors) override {
    Buffer<float> copy;
    const auto rows = kept_.release();
    const TensorsOnHost<Space> on_host(space, tensors);
    return evaluator_.evaluate(Cpu{host_threads(space)},
                               {rows.rows, rows.columns, rows_on_host(space, rows, copy)}, on_host.views());
  }

 private:
  const LinkEvaluator& evaluator_;
  KeptRowsOn<Space> kept_;
};

template <class Space>
class LinksOn final : public TaskOn<Space> {
 public:
  LinksOn(const Space& space, const Grid& grid, const LinkTargets& targets, const TrainConfig& train)
      : targets_(targets),
        score_(link_score_of(train)),
        decoder_(make_link_decoder(space, score_)),
        loss_(link_loss_of(train)),
        negatives_(train.negatives),
        evaluator_(grid, targets, train) {}

  std::int64_t outputs() const override { return targets_.outputs; }
  std::vector<TensorShape> tensors() const override {
    return link_tensors(score_, targets_.relations(), targets_.outputs);
  }
  const ExampleSource& examples() const override { return *targets_.train_links; }

  double weight(const EpochPlan& plan, std::int64_t begin, std::int64_t end) const override {
    return static_cast<double>(links_of(plan).count_links(begin, end));
  }

  void loss(const Space& space, const EpochPlan& plan, std::int64_t batch, const Matrix<float, Space>& logits,
            const TaskTensorsOn<Space>& tensors, double scale, Matrix<float, Space>& dlogits,
            double* loss) override {
    const auto& links = links_of(plan).links(batch);
    const auto n = links.links(), all = n * (1 + negatives_);
    // Links, then the negatives of each.
    host_.clear();
    const auto append = [&](const Buffer<std::int32_t>& list) {
      host_.insert(host_.end(), list.begin(), list.end());
    };
    append(links.heads);
    append(links.negative_heads);
    append(links.tails);
    append(links.negative_tails);
    append(links.relations);
    for (const auto relation : links.relations)
      host_.insert(host_.end(), static_cast<std::size_t>(negatives_), relation);
    ends_.resize(host_.size());
    copy_to(space, host_.data(), std::ssize(host_), ends_.data());
    const LinksView view = {all, ends_.data(), ends_.data() + all, ends_.data() + 2 * all};

    scores_.resize(all);
    dscores_.resize(all);
    tensors_.clear();
    for (const auto& tensor : tensors.values) tensors_.push_back(tensor.value);
    decoder_->forward(space, logits, tensors_, view, scores_.data());
    float *const scores = scores_.data(), *const dscores = dscores_.data();
    if constexpr (std::is_same_v<Space, Cpu>)
      *loss = link_losses(space, loss_, n, negatives_, scores, scores + n, scale, dscores, dscores + n);
    else
      link_losses(space, loss_, n, negatives_, scores, scores + n, scale, dscores, dscores + n, loss);
    find_link_places(space, view, logits.rows, tensors_.empty() ? 0 : tensors_[0].rows, places_);
    dlogits.resize(logits.rows, logits.columns);
    fill_zero(space, dlogits.data);
    decoder_->backward(space, logits, tensors_, view, places_, scores_.data(), dscores_.data(), dlogits,
                       tensors.gradients);
  }

  std::unique_ptr<RowEvaluatorOn<Space>> evaluator() const override {
    return std::make_unique<EvaluatedLinkRows<Space>>(targets_, evaluator_);
  }

 private:
  static const LinkExamples& links_of(const EpochPlan& plan) {
    return dynamic_cast<const LinkExamples&>(plan.examples());
  }
  const LinkTargets& targets_;
  LinkScore score_;
  std::unique_ptr<LinkDecoder<Space>> decoder_;
  LinkLoss loss_;
  std::int64_t negatives_;
  LinkEvaluator evaluator_;
  // Of the batch under way.
  Buffer<std::int32_t> host_;
  Array<Space, std::int32_t> ends_;
  Array<Space, float> scores_, dscores_;
  LinkPlacesOn<Space> places_;
  std::vector<ConstMatrixView<float, Space>> tensors_;
};

}  // namespace espalier
