// What the handles of the C interface (espalier.h) stand for.
//
// The job's queue is the one that communicates while batches are drawn ahead: whatever else a job
// does waits for it first, so that all ranks do the same in the same order.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "espalier.h"
#include "espalier/base/work_queue.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/job/batch_loader.hpp"
#include "espalier/job/training_on_gpu.hpp"
#include "espalier/train/trainer.hpp"

struct espalier_loader {
  espalier_job* job = nullptr;
  std::unique_ptr<espalier::BatchLoader> loader;
};

struct espalier_batch {
  std::shared_ptr<const espalier::LoadedBatch> item;
  // What a view shows beside the item's own arrays.
  std::vector<espalier::Buffer<std::int64_t>> indptr;
  std::vector<espalier_block> blocks;
  std::vector<espalier_rows> tables;
  espalier::Buffer<std::int64_t> run_begins;
  espalier::Buffer<std::int32_t> run_types;
};

struct espalier_job {
  /// Collective over `ranks`.
  espalier_job(espalier::Communicator ranks, const espalier::Config& config);

  espalier::Communicator world;
  espalier::Communicator beside;           ///< for sums, while the queue is at work
  std::vector<std::string> warnings = {};  ///< what people should know of the job; on rank 0
  espalier::Job job;                       ///< over world, which stays where it is
  espalier::WorkQueue queue;
  std::optional<espalier::TrainingSet> set = {};
  std::unique_ptr<espalier::Trainer> trainer = {};
  bool trained = false;  ///< espalier_train_end was called
  std::vector<std::unique_ptr<espalier_loader>> loaders = {};
  std::string about = {};
  std::string problem = {};  ///< not empty: it can only be closed

  /// Collective the first time. What it trains and draws with, when nothing is under way.
  const espalier::TrainingSet& training();
  /// Of the CPU; throws UserError(kUsage) where the job is on a GPU.
  const espalier::TrainingSetOn<espalier::Cpu>& on_cpu();
  /// Collective the first time, with nothing under way.
  espalier::Trainer& network();
  /// Nothing of the job is under way when it returns.
  void rest();
};

namespace espalier {

/// Does `work`, and says by a code how it went: the text is espalier_error()'s. A defect makes a
/// job, unless it is null, one that can only be closed.
int answer(espalier_job* job, const std::function<int()>& work);

/// As espalier_describe says it.
std::string describe_job(const espalier_job& job);

}  // namespace espalier
