// The task "links", for every space: links.cpp and links.cu instantiate it. Scores of a batch's
// links and negatives (nn/link_scores.hpp), a loss of both (nn/link_losses.hpp), averaged over the
// links of a step; ranks on the host (link_judge.hpp).
#pragma once

#include "espalier/base/arrays.hpp"
#include "espalier/nn/link_losses.hpp"
#include "espalier/nn/link_scores.hpp"
#include "espalier/train/links.hpp"
#include "link_judge.hpp"
#include "on_host.hpp"

namespace espalier {

LinkScore link_score_of(const TrainConfig& train);
LinkLoss link_loss_of(const TrainConfig& train);
std::vector<TensorShape> link_tensors(const LinkScore& score, std::int64_t relations, std::int64_t width);

// *sum, in memory of the space, = the sum of the losses.
void sum_link_losses(const Cpu& cpu, const LinkLoss& loss, std::int64_t count, std::int64_t negatives,
                     const float* positive, const float* negative, double scale, float* dpositive,
                     float* dnegative, double* sum);
void sum_link_losses(const Cuda& cuda, const LinkLoss& loss, std::int64_t count, std::int64_t negatives,
                     const float* positive, const float* negative, double scale, float* dpositive,
                     float* dnegative, double* sum);

// What the score reads of a relation's rows, where it has any.
template <class Space>
ConstMatrixView<float, Space> relation_rows(std::span<const Parameter<float, Space>> tensors) {
  return tensors.empty() ? ConstMatrixView<float, Space>() : ConstMatrixView<float, Space>(tensors[0].value);
}

template <class Space>
class LinksOn final : public TaskOn<Space> {
 public:
  LinksOn(const Grid& grid, const LinkTargets& targets, const TrainConfig& train)
      : targets_(targets),
        score_(link_score_of(train)),
        loss_(link_loss_of(train)),
        negatives_(train.negatives),
        judge_(grid, targets, score_, train.negatives_of == "both", train.ranked_against,
               static_cast<std::uint64_t>(train.seed)) {}

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
    const auto relations = relation_rows<Space>(tensors.values);
    link_scores(space, score_, logits, relations, view, scores_.data());
    sum_link_losses(space, loss_, n, negatives_, scores_.data(), scores_.data() + n, scale, dscores_.data(),
                    dscores_.data() + n, loss);
    find_link_places(space, view, logits.rows, relations.rows, places_);
    dlogits.resize(logits.rows, logits.columns);
    fill_zero(space, dlogits.data);
    if (!tensors.gradients.empty()) fill_zero(space, tensors.gradients[0].data);
    link_scores_backward(space, score_, logits, relations, view, places_, scores_.data(), dscores_.data(),
                         dlogits, tensors.gradients.empty() ? no_gradient_ : tensors.gradients[0]);
  }

  Evaluation judge(const Space& space, const Matrix<float, Space>& logits,
                   std::span<const Parameter<float, Space>> tensors) const override {
    Buffer<float> rows, relations;
    const auto on_host = [&](const Matrix<float, Space>& matrix, Buffer<float>& copy) {
      return ConstMatrixView<float>(matrix.rows, matrix.columns, rows_on_host(space, matrix, copy));
    };
    return judge_.judge(Cpu{host_threads(space)}, on_host(logits, rows),
                        tensors.empty() ? ConstMatrixView<float>() : on_host(tensors[0].value, relations));
  }

 private:
  static const LinkExamples& links_of(const EpochPlan& plan) {
    return dynamic_cast<const LinkExamples&>(plan.examples());
  }
  const LinkTargets& targets_;
  LinkScore score_;
  LinkLoss loss_;
  std::int64_t negatives_;
  LinkJudge judge_;
  // Of the batch under way.
  Buffer<std::int32_t> host_;
  Array<Space, std::int32_t> ends_;
  Array<Space, float> scores_, dscores_;
  LinkPlacesOn<Space> places_;
  Matrix<float, Space> no_gradient_;
};

}  // namespace espalier
