// The hook of a step for trainable embeddings (feature/embedding_store.hpp), the last table of a
// network's input: derivatives by the rows that minibatches read go to the ranks that own them, and
// change them there.
#pragma once

#include "espalier/feature/input_tables.hpp"
#include "espalier/train/optimizer.hpp"
#include "espalier/train/planned_hooks.hpp"
#include "espalier/train/step_hook.hpp"

namespace espalier {

template <class Space>
class TrainableEmbeddingsOn final : public StepHookOn<Space> {
  using typename StepHookOn<Space>::Pass;

 public:
  explicit TrainableEmbeddingsOn(const TrainingJobOn<Space>& job)
      : train_(job.config.train), rows_(*job.input.embeddings()) {}

  void join(Pass& pass) override {
    const auto m = pass.place;
    if (const auto* const read = pass.rows_read)
      lists_.emplace_back(read->data(), read->size());
    else
      lists_.push_back(pass.minibatch.vertices);
    batches_.push_back(pass.minibatch.number);
    if (gradients_.size() <= m) gradients_.resize(m + 1);
    pass.row_gradients.back() = &gradients_[m];
  }
  void update(const Space& space, std::int64_t epoch, Network<float, Space>&) override {
    // Booked beside what brought the rows.
    rows_.update(space, rate_of_epoch(train_, train_.embedding_rate, epoch), lists_, batches_, gradients_,
                 "fetch/update");
    lists_.clear();
    batches_.clear();
  }

  void state(const Space& space, std::int64_t, bool best, std::vector<StateTensor>& to) override {
    std::ranges::move(rows_.state(space), std::back_inserter(to));
    if (best) std::ranges::move(rows_.state_of_kept(best_), std::back_inserter(to));
  }
  void weights(const Space& space, bool best, std::vector<StateTensor>& to) override {
    std::ranges::move(best ? rows_.state_of_kept(best_) : rows_.weights(space), std::back_inserter(to));
  }
  std::string restore(const Space& space, std::int64_t, bool best, SavedTensors& tensors) override {
    const auto find = [&](const std::string& name, std::int64_t rows,
                          std::int64_t columns) -> const StateTensor& {
      return tensors.take(name, rows, columns);
    };
    rows_.restore(space, find);
    if (best) best_ = rows_.restore_kept(find);
    // All of them, as rows of a type may lie on other ranks alone.
    for (const auto& tensor : rows_.state(space)) tensors.mark(tensor.name);
    for (const auto& tensor : rows_.state_of_kept(best_)) tensors.mark(tensor.name);
    return {};
  }
  void keep_best(const Space& space) override { best_ = rows_.kept_rows(space); }
  void restore_best(const Space& space) override { rows_.put_back(space, best_, "best weights"); }

 private:
  const TrainConfig& train_;
  EmbeddingStoreOn<Space>& rows_;
  // Of the step that computes: which rows each minibatch reads, and the derivatives by them.
  std::vector<std::span<const std::int64_t>> lists_;
  std::vector<std::int64_t> batches_;
  std::vector<Matrix<float, Space>> gradients_;
  Buffer<float> best_;  // the rows of my shard
};

template <class Space>
std::unique_ptr<StepHookOn<Space>> make_trainable_embeddings(const HooksOfJob<Space>& of) {
  if (of.job.input.embeddings() == nullptr) return nullptr;
  return std::make_unique<TrainableEmbeddingsOn<Space>>(of.job);
}

inline PlannedHook plan_trainable_embeddings(const PlannedTraining& training, double) {
  const auto tables = input_tables(training.graph, training.config);
  if (tables.empty() || !tables.back().trainable) return {};
  const auto nodes = training.graph.nodes;
  const double of_rows = table_bytes(tables, nodes, true) * training.share,
               counts = 4 * static_cast<double>(tables.back().held.count(nodes)) * training.share,
               copies = static_cast<double>(training.replication);
  // When each row changed; of the shard the optimiser's state and, of the host, the best rows.
  const double moments = training.config.train.embedding_optimizer == "adam" ? 2 : 1;
  return {
      .kept = {{"embeddings", of_rows + counts + (moments * of_rows + counts) / copies, of_rows / copies}}};
}

}  // namespace espalier
