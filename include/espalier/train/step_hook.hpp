// A part of a training step: a mechanism that joins training without the pipeline, the trainer, the
// network, checkpoints or reports knowing it. History, trainable embeddings, running statistics,
// clipped gradients are hooks; src/train/step_hooks.inl.hpp lists them. And TrainingJobOn, what a
// trainer and its hooks work with.
//
// Of each step, on every rank, in this order:
//
//     draw      by a part that draws the minibatches of a step itself, instead of the sampler
//     begin     the step's minibatches, before their rows are asked for. They may be changed
//     join      a minibatch, before its forward pass: what the network is given beside its input
//     note      the same when its backward pass is done
//     end       all minibatches of the step are done; nothing was reduced yet
//     reduced   the gradients of the step are there, the same on every rank
//     update    the optimiser has changed the weights
//
// With run.overlap, steps begin before others have ended (step_pipeline.hpp); from `join` on
// they come one after the other. Steps are counted from the first of the job, so what a part does
// is a function of the config and the graph, on any grid. Every call is collective over the grid,
// but for those that say so; what a part sends is booked under labels of its own.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "espalier/base/config.hpp"
#include "espalier/comm/counters.hpp"
#include "espalier/feature/input_stores.hpp"
#include "espalier/file/state_tensor.hpp"
#include "espalier/nn/network.hpp"
#include "espalier/sample/epoch_sampler.hpp"
#include "espalier/train/evaluator.hpp"
#include "espalier/train/report.hpp"
#include "espalier/train/task.hpp"

namespace espalier {

// What training works with.

/// What a trainer works with; everything must outlive it.
template <class Space>
struct TrainingJobOn {
  const GridOn<Space>& grid;
  const Config& config;
  SamplerOn<Space>& sampler;
  const InputStoresOn<Space>& input;
  TaskOn<Space>& task;
  const EvaluatorOn<Space>& evaluator;
  std::int64_t bulk = 1;              ///< resolved from sampler.bulk
  std::int64_t batches_per_step = 1;  ///< resolved from train.batches_per_step
  /// The thread that samples ahead, with run.overlap, and the ranks of the grid that `sampler` and
  /// the evaluator's sampler are made over, one of its own beside `grid`; on GPUs by
  /// Transport::kHost. Null: they are made over `grid`, and windows are sampled when needed.
  SampleAhead* ahead = nullptr;
  InputShape input_shape = {};          ///< of the network; none: that of one table of features
  const BatchGroups* groups = nullptr;  ///< of local batches, or null
  std::int64_t population = 0;          ///< of the batches, as EpochShape has it
  /// Vertices whose features are worth keeping, best first (rows_by_degree); with run.cache_memory.
  std::span<const std::int64_t> by_degree = {};
};

/// A step that begins.
template <class Space>
struct UpcomingStepOn {
  std::int64_t number = 0;  ///< of the job, from 0
  const EpochPlan* plan = nullptr;
  std::int64_t step = 0;                             ///< of the plan
  std::vector<std::int64_t> batches = {};            ///< those that this rank keeps, ascending
  std::vector<MinibatchOn<Space>> minibatches = {};  ///< of each
  /// As they were sampled; empty where a part has drawn them.
  std::vector<MinibatchOn<Space>> sampled = {};
  bool changed = false;                    ///< are minibatches others than those?
  std::optional<SampleCounts> drawn = {};  ///< by a part, of this rank
};

/// A minibatch on its way through the network.
template <class Space>
struct MinibatchPassOn {
  std::int64_t step = 0;  ///< its number in the job
  std::size_t place = 0;  ///< which of this rank's minibatches of the step it is
  const MinibatchOn<Space>& minibatch;
  /// The rows that it reads of the last table, or null: those of its vertices.
  const Array<Space, std::int64_t>* rows_read = nullptr;
  const JoinedRows<float, Space>* joined = nullptr;  ///< or null
  /// Of each table of the input, or null: where derivatives by its rows go.
  std::vector<Matrix<float, Space>*> row_gradients = {};
};

/// A tensor that every rank has, by its name in a checkpoint.
template <class Space>
struct TensorPlaceOn {
  std::string name;
  Matrix<float, Space>* tensor;
  bool of_weights = true;        ///< the best epoch's is kept
  bool may_be_missing = false;   ///< in a checkpoint: then its part goes on without (restore)
  std::string former_name = {};  ///< in checkpoints of earlier versions, where it was another
};

/// The tensors of a file, of a checkpoint unless it is said, and which of them were taken.
class SavedTensors {
 public:
  explicit SavedTensors(const std::vector<StateTensor>& tensors, std::string file = "the checkpoint")
      : tensors_(tensors), file_(std::move(file)) {}

  /// Throws UserError(kInput) where there is none of that name, or it has another shape.
  const StateTensor& take(const std::string& name, std::int64_t rows, std::int64_t columns,
                          const std::string& former_name = {});
  bool has(const std::string& name) const;
  const std::vector<StateTensor>& all() const { return tensors_; }
  /// Counts as taken.
  void mark(const std::string& name) { taken_.insert(name); }
  /// Throws UserError(kInput) that names a tensor which nothing took, but for those that a job may
  /// go on without.
  void check_all_taken() const;

 private:
  const std::vector<StateTensor>& tensors_;
  std::string file_;
  std::set<std::string, std::less<>> taken_;
};

template <class Space>
class StepPipelineOn;

/// What a part is made of. All but the space must outlive it.
template <class Space>
struct HooksOfJob {
  const Space& space;
  const TrainingJobOn<Space>& job;
  Network<float, Space>& network;
  const StepPipelineOn<Space>& pipeline;
};

template <class Space>
class StepHookOn {
 public:
  using Upcoming = UpcomingStepOn<Space>;
  using Pass = MinibatchPassOn<Space>;
  using Tensors = std::vector<Matrix<float, Space>>;

  virtual ~StepHookOn() = default;

  // ---- minibatches

  /// The first step whose minibatches it draws itself; no step: it draws none.
  virtual std::optional<std::int64_t> draws_from() const { return {}; }
  /// Has the network other blocks than were sampled?
  virtual bool makes_blocks() const { return false; }
  virtual void draw(const Space&, SamplerOn<Space>&, Upcoming&) {}
  virtual void begin(const Space&, Upcoming&) {}

  // ---- a step, not collective but for the last three

  virtual void join(Pass&) {}
  virtual void note(const Space&, const Pass&, Network<float, Space>&) {}
  virtual void end(const Space&, std::int64_t /*number*/) {}
  virtual void reduced(const Space&, std::int64_t /*minibatches of the step*/, Tensors& /*gradients*/) {}
  virtual void update(const Space&, std::int64_t /*epoch*/, Network<float, Space>&) {}

  // ---- evaluation

  /// Puts the weights there that are to be evaluated, and takes them away again. Not collective.
  virtual void before_evaluation(const Space&, Network<float, Space>&) {}
  virtual void after_evaluation(const Space&, Network<float, Space>&) {}

  // ---- what lasts. `next`: the first step that has not ended

  /// Tensors that every rank has.
  virtual std::vector<TensorPlaceOn<Space>> tensors(Network<float, Space>&) { return {}; }
  /// Rows that ranks have apart, those of the best epoch too, where `best`. Valid until the next
  /// step begins or ends.
  virtual void state(const Space&, std::int64_t /*next*/, bool /*best*/, std::vector<StateTensor>&) {}
  /// Not collective. Of those rows the ones that belong to the weights: of this moment, or of the
  /// best epoch, with best/ before their names.
  virtual void weights(const Space&, bool /*best*/, std::vector<StateTensor>&) {}
  /// Not collective, after all tensors that every rank has. Takes them from a checkpoint. Where
  /// training goes on without what it misses there, words that follow "the checkpoint has".
  virtual std::string restore(const Space&, std::int64_t /*next*/, bool /*best*/, SavedTensors&) {
    return {};
  }
  /// The rows of this moment are those of the best epoch; and become those of this moment again.
  virtual void keep_best(const Space&) {}
  virtual void restore_best(const Space&) {}

  // ---- what is said of it

  /// Not collective. Mine, of this run in the epoch.
  virtual Counters counters() const { return counters_; }
  void clear_counters() { counters_.clear(); }
  /// What a report says beside counters, at the end of an epoch.
  virtual void report(const Space&, std::int64_t /*next*/, EpochReport&) {}
  /// Not collective. Memory of rows that it keeps on this rank.
  virtual std::int64_t bytes() const { return 0; }

 protected:
  Counters counters_;
};

template <class Space>
using StepHooksOn = std::vector<std::unique_ptr<StepHookOn<Space>>>;

/// What a log says of parts after training; empty where none has anything to say.
std::string lines_of_parts(std::span<const EpochReport> epochs);

}  // namespace espalier
