// What the handles of the C interface (espalier.h) stand for.
//
// All that a job does, its queue does: batches that are drawn ahead and what is asked for meanwhile
// stand in one line, so that all ranks do the same in the same order; and one thread has the GPU.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "espalier.h"
#include "espalier/base/error.hpp"
#include "espalier/base/work_queue.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/job/batch_loader.hpp"
#include "espalier/job/training_on_gpu.hpp"
#include "espalier/train/trainer.hpp"

namespace espalier {

#ifdef ESPALIER_WITH_CUDA
using AnyLoader = std::variant<std::unique_ptr<BatchLoaderOn<Cpu>>, std::unique_ptr<BatchLoaderOn<Cuda>>>;
using AnyBatch =
    std::variant<std::shared_ptr<const LoadedBatchOn<Cpu>>, std::shared_ptr<const LoadedBatchOn<Cuda>>>;
using AnyTrainer = std::variant<std::unique_ptr<TrainerOn<Cpu>>, std::unique_ptr<TrainerOn<Cuda>>>;
#else
using AnyLoader = std::variant<std::unique_ptr<BatchLoaderOn<Cpu>>>;
using AnyBatch = std::variant<std::shared_ptr<const LoadedBatchOn<Cpu>>>;
using AnyTrainer = std::variant<std::unique_ptr<TrainerOn<Cpu>>>;
#endif

}  // namespace espalier

struct espalier_loader {
  espalier_job* job = nullptr;
  espalier::AnyLoader loader;
};

struct espalier_batch {
  espalier::AnyBatch item;
  // What a view shows beside the item's own arrays.
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
  espalier::WorkQueue queue;
  espalier::Job job;  ///< over world, which stays where it is
  std::optional<espalier::TrainingSet> set = {};
  std::optional<espalier::AnyTrainer> trainer = {};
  bool trained = false;  ///< espalier_train_end was called
  std::vector<std::unique_ptr<espalier_loader>> loaders = {};
  std::string about = {};
  std::string problem = {};  ///< not empty: it can only be closed

  // By the queue:

  /// Collective the first time. What it trains and draws with.
  const espalier::TrainingSet& training();
  /// Collective the first time.
  const espalier::AnyTrainer& network();
  /// A trainer's window may be under way on the thread that all pipelines share.
  void rest();
};

namespace espalier {

/// Does `work`, and says by a code how it went: the text is espalier_error()'s. A defect makes a
/// job, unless it is null, one that can only be closed.
int answer(espalier_job* job, const std::function<int()>& work);
/// The same by the job's queue, behind all that it was asked for.
int answer_in_turn(espalier_job* job, const std::function<int()>& work);

/// As espalier_describe says it.
std::string describe_job(const espalier_job& job);

// Structures that begin with struct_size, between a caller and a library of other versions.

/// What a caller says; members that it does not know are 0. Throws UserError(kUsage).
template <class Struct>
Struct told(const Struct* given) {
  if (given == nullptr || given->struct_size < sizeof(std::size_t))
    usage_error("a structure of the call is missing, or its struct_size is not set{}", "");
  Struct whole = {};
  std::memcpy(&whole, given, std::min(given->struct_size, sizeof(Struct)));
  return whole;
}

/// Fills in what the caller knows of; its struct_size stays.
template <class Struct>
void copy_told(Struct* to, Struct from) {
  from.struct_size = told(to).struct_size;
  std::memcpy(to, &from, std::min(to->struct_size, sizeof(Struct)));
}

}  // namespace espalier
