// A task: what a network is trained for, and what it is judged by.
//
// A task says which training examples an epoch has and the seeds of their batches; what the loss of
// a batch is and its gradient by the logits; what a step divides it by, so that it is a mean over
// all seeds of the step, whichever ranks keep them; and how good the logits of all vertices are.
// The trainer and the evaluator ask, and know no labels.
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
#include "espalier/product/schedule.hpp"
#include "espalier/sample/epoch_plan.hpp"
#include "espalier/train/evaluation.hpp"
#include "espalier/train/targets.hpp"

namespace espalier {

template <class Space>
class TaskOn {
 public:
  virtual ~TaskOn() = default;

  /// Columns of the logits.
  virtual std::int64_t outputs() const = 0;

  /// The training examples of an epoch, shuffled and cut into batches: the same on every rank.
  virtual EpochPlan plan_epoch(const EpochShape& shape) const = 0;

  /// What the sum of the losses of batches [begin, end) is divided by to be their mean: the same on
  /// every rank. 0 where there is nothing to learn of them.
  virtual double weight(const EpochPlan& plan, std::int64_t begin, std::int64_t end) const = 0;

  /// *loss, in memory of the space, becomes the SUM of the losses of a batch of the plan, and
  /// `dlogits` scale * its gradient. logits: [seeds of the batch, outputs]. Where the space is a
  /// GPU the host does not wait.
  virtual void loss(const Space& space, const EpochPlan& plan, std::int64_t batch,
                    const Matrix<float, Space>& logits, double scale, Matrix<float, Space>& dlogits,
                    double* loss) = 0;

  /// Collective. The scores of the splits. `logits`: a row for each vertex that this rank judges,
  /// in the order of Targets::judges. Results are the same on every grid.
  virtual Evaluation judge(const Space& space, const Matrix<float, Space>& logits) const = 0;
};

using Task = TaskOn<Cpu>;

/// The task of `train`, over what read_targets returned for its name. Both must outlive it.
template <class Space>
std::unique_ptr<TaskOn<Space>> make_task(const Space& space, const Grid& grid, const Targets& targets,
                                         const TrainConfig& train);

/// A job as far as a plan asks a task about it.
struct TaskSize {
  const GraphInfo& graph;
  int ranks = 1, rows = 1;  ///< of the grid: all ranks, block rows
  /// How many vertices of each split each rank judges.
  std::array<std::vector<double>, 3> judged = {};
};

/// What the rest of the program must know of a task.
struct TaskKind {
  const char* name;
  bool several_labels;                  ///< has it several labels per vertex, or one?
  std::span<const MetricKind> metrics;  ///< in the order of reports; the first is the usual one
  const char* noun;                     ///< what a column of the logits is: "class"
  /// Bytes of the targets on a rank, and of an epoch's plan, but for the ids of the splits.
  double (*label_bytes)(const TaskSize& size);
  /// What judging holds on a rank beside the logits.
  double (*judging_bytes)(const TaskSize& size);
  /// What judging all splits makes a rank receive.
  Cost (*judging)(const TaskSize& size, int rank);
  /// Collective. Throws UserError(kInput), on every rank, where the labels of a file cannot be
  /// learnt or judged by; nullptr: those that check_labels and check_splits let through can.
  void (*check)(const Communicator& comm, const GraphFile& file, const TrainConfig& train) = nullptr;
};

/// How many seeds the batches of an epoch have together, and how many batches that are.
std::int64_t seeds_of_epoch(const GraphInfo& graph, const Config& config);
std::int64_t batches_of_epoch(const GraphInfo& graph, const Config& config);

std::span<const TaskKind* const> task_kinds();

/// The task of a name. Throws UserError(kUsage) that lists the names when there is none.
const TaskKind& task_kind_of(const std::string& name);

/// The metric that "best" is judged by: train.metric, or the task's usual one. Throws
/// UserError(kUsage) when it is another task's.
const MetricKind& metric_of(const TrainConfig& train);

/// "accuracy 0.8148, macro-F1 0.7423".
std::string scores_in_words(const TaskKind& task, const Metrics& metrics);

}  // namespace espalier
