// Minibatches of a job as they are drawn, for whoever computes with them himself: those of its
// training, bit for bit, or vertices once each.
//
// A step of S batches gives every rank ceil(S / p) items, of which some may have no seeds, so that
// all ranks take as many. A thread draws and fetches the steps after the one that was asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "espalier/base/work_queue.hpp"
#include "espalier/feature/edge_store.hpp"
#include "espalier/job/job.hpp"
#include "espalier/sample/examples.hpp"
#include "espalier/train/training_state.hpp"

namespace espalier {

template <class Space>
class TrainingSetOn;  // training_on_gpu.hpp

struct LoaderOptions {
  /// Empty, and no vertices: the batches of training. Else "train", "valid" or "test": every vertex
  /// of the split once, in order.
  std::string split = {};
  /// Instead: these, in this order, each once; no labels.
  std::optional<std::vector<std::int64_t>> vertices = {};
  std::vector<std::int64_t> fanout = {};  ///< next to the seeds first, -1: whole rows; none:
                                          ///< the config's
  std::int64_t batch_size = 0;            ///< 0: the config's
  std::int64_t epochs = 0;                ///< 0: train.epochs; of a split or vertices 1
  std::int64_t ahead = -1;                ///< steps ready before they are asked for; -1:
                                          ///< run.prefetch_steps, 0: none
};

/// An item: a batch of this rank with all that a network reads of it, or none.
struct LoadedBatch {
  Cursor step;                                ///< that it is of
  std::int64_t batch = -1;                    ///< of the epoch; -1: an item without one
  bool ends_step = false;                     ///< the last of this rank's
  double scale = 0;                           ///< ranks / examples of the step; 0:
                                              ///< nothing is learnt
  Minibatch minibatch;                        ///< without a batch: blocks of no rows
  std::vector<Matrix<float>> tables;          ///< rows of each table of features
  std::shared_ptr<const EdgesOn<Cpu>> edges;  ///< what the blocks' edges point to
  bool of_classes = false, of_links = false;  ///< what is learnt, if that is known
  std::int64_t negatives = 0;                 ///< of each link
  Buffer<std::int32_t> classes;               ///< of the seeds (task "classes"); or none
  Matrix<std::uint8_t> labels;                ///< of the seeds (task "labels"); or none
  SeedBatch seeds;                            ///< with its links
};

class BatchLoader {
 public:
  virtual ~BatchLoader() = default;

  struct Facts {
    std::int64_t epochs = 1;
    std::int64_t batches = 0, steps = 0, batches_per_step = 1;  ///< of an epoch, over all ranks
    std::int64_t items = 0;                                     ///< of an epoch, on each rank
  };
  virtual const Facts& facts() const = 0;

  // All are collective, by one thread at a time; `ready` is local.

  /// The next item is the first of this step.
  virtual void seek(const Cursor& to) = 0;
  /// Has the next items drawn and fetched; does not wait.
  virtual void begin() = 0;
  /// Waits for what begin() asked for, so long at most: would next() wait?
  virtual bool ready(double seconds) = 0;
  /// Null: there is none.
  virtual std::shared_ptr<const LoadedBatch> next() = 0;
};

/// Collective. `queue`: of the job, used by all of its loaders, in the order in which they are
/// asked, so that ranks agree. All must outlive it. Throws UserError(kUsage) for options that the
/// job has not: a split of links, history, trainable embeddings.
std::unique_ptr<BatchLoader> open_loader(const Job& job, const TrainingSetOn<Cpu>& training, WorkQueue& queue,
                                         const LoaderOptions& options);

}  // namespace espalier
