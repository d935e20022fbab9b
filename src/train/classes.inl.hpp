// The task "classes", for every space: classes.cpp and classes.cu instantiate it. Softmax and
// cross-entropy, averaged over the seeds of a step (nn/softmax_cross_entropy.hpp); accuracy and
// macro-F1 from counts that ranks add (metrics.hpp).
#pragma once

#include "espalier/comm/volumes.hpp"
#include "espalier/train/classes.hpp"
#include "espalier/train/metrics.hpp"
#include "vertex_task.hpp"

namespace espalier {

// *loss = the sum over the rows of the cross-entropy, in memory of the space; dlogits =
// scale * gradient. `labels` are the host's; a GPU gets a copy of them in `scratch`.
void cross_entropy(const Cpu& cpu, const Matrix<float>& logits, std::span<const std::int32_t> labels,
                   Buffer<std::int32_t>& scratch, double scale, Matrix<float>& dlogits, double* loss);
void cross_entropy(const Cuda& cuda, const Matrix<float, Cuda>& logits, std::span<const std::int32_t> labels,
                   DeviceArray<std::int32_t>& scratch, double scale, Matrix<float, Cuda>& dlogits,
                   double* loss);

template <class Space>
class ClassesOn : public VertexTaskOn<Space> {
 public:
  ClassesOn(const Grid& grid, const ClassTargets& targets)
      : VertexTaskOn<Space>(grid, targets, targets.train_labels), targets_(targets) {}

  double weight(const EpochPlan& plan, std::int64_t begin, std::int64_t end) const override {
    return static_cast<double>(plan.seeds(begin, end).size());
  }

  void loss(const Space& space, const EpochPlan& plan, std::int64_t batch, const Matrix<float, Space>& logits,
            double scale, Matrix<float, Space>& dlogits, double* loss) override {
    cross_entropy(space, logits, plan.tags(batch), labels_, scale, dlogits, loss);
  }

  // One reduction for all splits.
  Evaluation judge(const Space& space, const Matrix<float, Space>& logits,
                   std::int64_t first) const override {
    std::vector<std::int64_t> counts;
    for (const auto* split : {&targets_.train, &targets_.valid, &targets_.test}) {
      const auto share = class_counts(space, logits, labels_of(*split, first, logits.rows));
      counts.insert(counts.end(), share.begin(), share.end());
    }
    this->world().all_reduce(std::span<std::int64_t>(counts), Reduction::kSum, "evaluate");
    const auto of_split = [&](std::size_t s) {
      const auto length = counts.size() / 3;
      return metrics_of(std::span<const std::int64_t>(counts).subspan(s * length, length));
    };
    return {of_split(0), of_split(1), of_split(2)};
  }

 private:
  // Of the vertices first, first + 1, ...: labels but of those of the split that this rank judges
  // are hidden. `split` may name others too.
  std::vector<std::int32_t> labels_of(const Buffer<std::int64_t>& split, std::int64_t first,
                                      std::int64_t rows) const {
    std::vector<std::int32_t> labels(rows, -1);
    for (const auto vertex : part_of(split, targets_.judged))
      labels[vertex - first] = targets_.local_labels[vertex - targets_.block.begin];
    return labels;
  }

  static Metrics metrics_of(std::span<const std::int64_t> counts) {
    std::int64_t judged = 0;
    // tp + fn
    for (std::size_t c = 0; c < counts.size(); c += 3) judged += counts[c] + counts[c + 2];
    return {{{"accuracy", accuracy(counts)}, {"macro_f1", macro_f1(counts)}}, judged};
  }

  const ClassTargets& targets_;
  Array<Space, std::int32_t> labels_;  ///< of the batch under way, where the space needs a copy
};

}  // namespace espalier
