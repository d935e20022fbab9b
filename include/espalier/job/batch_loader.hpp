// Minibatches of a job as they are drawn, for whoever computes with them himself: those of its
// training, bit for bit, or vertices once each.
//
// A step of S batches gives every rank ceil(S / p) items, of which some may have no seeds, so that
// all ranks take as many. A thread draws and fetches the steps after the one that was asked for.
// They lie where the job computes: in memory of the host, or of GPUs, from where they may be
// brought to the host.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "espalier/base/device_array.hpp"
#include "espalier/base/work_queue.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/job/job.hpp"
#include "espalier/sample/minibatch.hpp"
#include "espalier/train/training_state.hpp"

namespace espalier {

template <class Space>
class TrainingSetOn;  // training_on_gpu.hpp

/// Memory of a user's kind, as pinned memory is; called by any thread.
struct RowMemory {
  std::function<void*(std::size_t bytes)> allocate = {};  ///< null: there is none
  std::function<void(void*)> release = {};
};

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
  RowMemory memory = {};                  ///< for rows of features on the host; empty: our own
};

/// What is said of an item.
struct LoadedItem {
  Cursor step;                                ///< that it is of
  std::int64_t batch = -1;                    ///< of the epoch; -1: an item without one
  bool ends_step = false;                     ///< the last of this rank's
  double scale = 0;                           ///< ranks / examples of the step; 0:
                                              ///< nothing is learnt
  bool of_classes = false, of_links = false;  ///< what is learnt, if that is known
  std::int64_t negatives = 0;                 ///< of each link
  std::vector<TypeRun> runs = {};             ///< of the vertices, on the host; none: one type
};

/// Ends of links, as places among the seeds.
template <class Space>
struct LoadedLinksOn {
  Array<Space, std::int32_t> heads, tails, relations;         ///< [links]
  Array<Space, std::int32_t> negative_heads, negative_tails;  ///< [links, negatives]
};

/// What was made on a GPU, for whoever reads it there.
struct MadeOnGpu {
  Cuda gpu;
  CudaHandover arrays;
  explicit MadeOnGpu(const Cuda& cuda) : gpu(cuda), arrays(cuda) {}
};

/// An item: a batch of this rank with all that a network reads of it, or none; in memory
/// of a space.
/// On a GPU all memory is its own, and goes when those who read it by `made` have.
template <class Space>
struct LoadedBatchOn : LoadedItem {
  MinibatchOn<Space> minibatch;                       ///< blocks from 0; without a batch of no rows
  std::vector<ConstMatrixView<float, Space>> tables;  ///< rows of each table of features,
  std::vector<Matrix<float, Space>> rows;             ///< which are these, where they are our own,
  std::vector<std::shared_ptr<void>> lent;            ///< or these
  Array<Space, std::int32_t> classes;                 ///< of the seeds (task "classes"); or none
  Matrix<std::uint8_t, Space> labels;                 ///< of the seeds (task "labels"); or none
  LoadedLinksOn<Space> links;                         ///< (task "links")
  std::shared_ptr<MadeOnGpu> made = nullptr;          ///< on GPUs
};
using LoadedBatch = LoadedBatchOn<Cpu>;

/// Of the sample, as sample_digest with what its examples are; 0 of an item without a batch.
std::uint64_t digest_of(const LoadedBatchOn<Cpu>& batch);
std::uint64_t digest_of(const LoadedBatchOn<Cuda>& batch);

struct LoaderFacts {
  std::int64_t epochs = 1;
  std::int64_t batches = 0, steps = 0, batches_per_step = 1;  ///< of an epoch, over all ranks
  std::int64_t items = 0;                                     ///< of an epoch, on each rank
};

/// Gives items in memory of a space. On GPUs it is made, moved to another step and taken down by
/// the queue, whose thread took the GPU; all else is its user's, by one thread at a time.
template <class Space>
class BatchLoaderOn {
 public:
  virtual ~BatchLoaderOn() = default;

  virtual const LoaderFacts& facts() const = 0;

  // All are collective; `ready` is local.

  /// The next item is the first of this step.
  virtual void seek(const Cursor& to) = 0;
  /// Has the next items drawn and fetched; does not wait.
  virtual void begin() = 0;
  /// Waits for what begin() asked for, so long at most: would next() wait?
  virtual bool ready(double seconds) = 0;
  /// Local, by any thread, as a handler of a signal. This rank wishes to stop: of the steps that
  /// are drawn from here on no rank gets one, until it seeks.
  virtual void stop() = 0;
  /// Did next() give nothing because of that?
  virtual bool stopped() const = 0;
  /// Null: there is none.
  virtual std::shared_ptr<const LoadedBatchOn<Space>> next() = 0;
};
using BatchLoader = BatchLoaderOn<Cpu>;

/// Collective. `queue`: of the job, used by all of its loaders, in the order in which they are
/// asked, so that ranks agree. All must outlive it. Items come where the job computes, or in memory
/// of the host. Throws UserError(kUsage) for options that the job has not: a split of links,
/// history, trainable embeddings.
template <class To, class Space>
std::unique_ptr<BatchLoaderOn<To>> open_loader(const Job& job, const TrainingSetOn<Space>& training,
                                               WorkQueue& queue, const LoaderOptions& options);

}  // namespace espalier
