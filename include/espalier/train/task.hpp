// A task: what a network is trained for, and what it is evaluated by.
//
// A task says where the training examples of an epoch come from; what the loss of a batch is and
// its gradient by the rows that the network gives, which we call logits whatever they are; what a
// step divides it by, so that it is a mean over all examples of the step, whichever ranks keep
// them; and how good the logits of all vertices are, which it takes chunk by chunk. It may have
// tensors of its own, which the network keeps for it. The trainer and the evaluator ask, and know
// no labels.
//
// A task is a file (src/train/classes.inl.hpp) and a line in the table (src/train/tasks.inl.hpp).
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "espalier/base/config.hpp"
#include "espalier/base/execution.hpp"
#include "espalier/comm/grid.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/infer/row_sink.hpp"
#include "espalier/nn/layer.hpp"
#include "espalier/product/schedule.hpp"
#include "espalier/sample/epoch_plan.hpp"
#include "espalier/train/evaluation.hpp"
#include "espalier/train/targets.hpp"

namespace espalier {

/// The tensors of a task, which a network keeps (Network::task_tensors), and where their gradients
/// go, in their shapes.
template <class Space>
struct TaskTensorsOn {
  std::span<const Parameter<float, Space>> values = {};
  std::span<Matrix<float, Space>> gradients = {};
};

/// Takes the rows of one pass over the whole graph as they come out of it, those of the
/// vertices that this rank evaluates in the order of Targets::evaluated_by, and keeps of them
/// what scores need.
template <class Space>
class RowEvaluatorOn : public RowSinkOn<Space> {
 public:
  /// Collective. The scores of the splits, once all rows were taken; the task's tensors. Results
  /// are the same on every grid, in whatever chunks rows came.
  virtual Evaluation finish(const Space& space, std::span<const Parameter<float, Space>> tensors) = 0;
};

template <class Space>
class TaskOn {
 public:
  virtual ~TaskOn() = default;

  /// Columns of the logits.
  virtual std::int64_t outputs() const = 0;
  /// Those that it wants to have trained.
  virtual std::vector<TensorShape> tensors() const { return {}; }

  /// The training examples of epochs.
  virtual const ExampleSource& examples() const = 0;

  /// What the sum of the losses of batches [begin, end) is divided by to be their mean: the same on
  /// every rank. 0 where there is nothing to learn of them.
  virtual double weight(const EpochPlan& plan, std::int64_t begin, std::int64_t end) const = 0;

  /// *loss, in memory of the space, becomes the SUM of the losses of a batch of the plan, and
  /// `dlogits` and the gradients of `tensors` scale * its gradient. logits: [seeds of the batch,
  /// outputs]. Where the space is a GPU the host does not wait.
  virtual void loss(const Space& space, const EpochPlan& plan, std::int64_t batch,
                    const Matrix<float, Space>& logits, const TaskTensorsOn<Space>& tensors, double scale,
                    Matrix<float, Space>& dlogits, double* loss) = 0;

  /// Of one pass. The task must outlive it.
  virtual std::unique_ptr<RowEvaluatorOn<Space>> evaluator() const = 0;
};

using Task = TaskOn<Cpu>;

/// The task of `train`, over what read_targets returned for it. Both must outlive it.
template <class Space>
std::unique_ptr<TaskOn<Space>> make_task(const Space& space, const Grid& grid, const Targets& targets,
                                         const TrainConfig& train);

/// A job as far as a plan asks a task about it.
struct TaskSize {
  const GraphInfo& graph;
  const Config& config;
  int ranks = 1, rows = 1;  ///< of the grid: all ranks, block rows
  /// How many vertices of each split each rank evaluates.
  std::array<std::vector<double>, 3> evaluated = {};
};

/// What the rest of the program must know of a task.
struct TaskKind {
  const char* name;
  bool several_labels;                  ///< of tasks of labels: has a vertex several, or one?
  bool of_labels = true;                ///< are its examples labelled vertices?
  std::span<const MetricKind> metrics;  ///< in the order of reports; the first is the usual one
  const char* noun;                     ///< what a column of the logits is: "class"
  const char* example;                  ///< what is learnt: "vertex"

  /// Columns of the logits, and what tensors it has.
  std::int64_t (*outputs)(const GraphInfo& graph, const Config& config);
  std::vector<TensorShape> (*tensors)(const GraphInfo& graph, const Config& config) = nullptr;
  /// How many examples each split has, in the order of Split, and how many seeds so many of them
  /// have; nullptr: as many.
  std::array<std::int64_t, 3> (*splits)(const GraphInfo& graph);
  std::int64_t (*seeds)(const GraphInfo& graph, const Config& config, std::int64_t examples) = nullptr;
  /// Collective. Where an epoch's examples come from, without what is to be learnt of them; with
  /// local batches their groups.
  std::unique_ptr<ExampleSource> (*read_examples)(const Communicator& comm, const GraphFile& file,
                                                  const Config& config, const BatchGroups* groups);
  /// Collective. What read_targets (targets.hpp) returns.
  std::unique_ptr<Targets> (*read_targets)(const Grid& grid, const GraphFile& file, const Ownership& blocks,
                                           const Config& config, const BatchGroups* groups);
  /// Collective. Where the training examples are that this rank reads, an even share of all: a
  /// vertex of each; nullptr: every rank has all of them, which are vertices.
  Buffer<std::int64_t> (*places)(const Communicator& comm, const GraphFile& file) = nullptr;

  /// Bytes of the targets on a rank, and of an epoch's plan, but for the ids of the splits.
  double (*label_bytes)(const TaskSize& size);
  /// What the loss of a batch holds beside the logits and their gradient; nullptr: little.
  double (*loss_bytes)(const GraphInfo& graph, const Config& config) = nullptr;
  /// Rows that a rank keeps of those that come out of an evaluation, and what it holds beside them
  /// when all have come; nullptr: little.
  double (*kept_bytes)(const TaskSize& size) = nullptr;
  double (*evaluation_bytes)(const TaskSize& size) = nullptr;
  /// What a rank receives in an epoch for its examples, which it asks for in so many windows;
  /// nullptr: nothing.
  Cost (*preparing)(const TaskSize& size, double windows) = nullptr;
  /// What evaluating all splits makes a rank receive.
  Cost (*evaluating)(const TaskSize& size, int rank);
  /// Throws UserError(kUsage) for keys that do not go with it; nullptr: all do.
  void (*check_keys)(const Config& config) = nullptr;
  /// Collective. Throws UserError(kInput), on every rank, where a file has not what is to be
  /// learnt or evaluated by; of tasks of labels what check_labels and check_splits let through.
  /// nullptr: it has.
  void (*check)(const Communicator& comm, const GraphFile& file, const Config& config) = nullptr;

  /// Those that are learnt.
  std::int64_t examples(const GraphInfo& graph) const { return splits(graph)[0]; }
};

/// How many seeds a batch of an epoch has, how many all of them have together, and how many batches
/// that are.
std::int64_t seeds_of_batch(const GraphInfo& graph, const Config& config);
std::int64_t seeds_of_epoch(const GraphInfo& graph, const Config& config);
std::int64_t batches_of_epoch(const GraphInfo& graph, const Config& config);

std::span<const TaskKind* const> task_kinds();

/// The task of a name. Throws UserError(kUsage) that lists the names when there is none.
const TaskKind& task_kind_of(const std::string& name);

/// The metric that "best" is evaluated by: train.metric, or the task's usual one. Throws
/// UserError(kUsage) when it is another task's.
const MetricKind& metric_of(const TrainConfig& train);

/// What a rank is expected to receive by collectives that book so much (comm/traffic.hpp).
Cost cost_of(const Volume& volume);
Cost all_reduce_cost(std::int64_t bytes, int ranks);

/// "accuracy 0.8148, macro-F1 0.7423".
std::string scores_in_words(const TaskKind& task, const Metrics& metrics);

}  // namespace espalier
