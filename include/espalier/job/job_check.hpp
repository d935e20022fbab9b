// The one check of a job: its config, its graph, what the data of the graph say, the grid and the
// memory. `plan`, `train`, `sample` and `infer` ask here, before anything large is read, and refuse
// the same with the same words. A check is a line in the table (job_check.cpp).
#pragma once

#include <cstdint>
#include <string>

#include "espalier/base/config.hpp"
#include "espalier/base/log.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/graph/graph_file.hpp"
#include "espalier/partition/order.hpp"
#include "espalier/plan/memory_verdict.hpp"

namespace espalier {

/// What a job does with its graph. kWrite: samples, and writes minibatches and labels.
enum class JobKind { kSample, kWrite, kTrain, kInfer };

/// When a check can be made.
enum class Moment {
  kConfig,  ///< the config alone is known
  kGraph,   ///< the graph file is open
  kGrid,    ///< every "auto" of the config is a number
  kMemory   ///< what the job needs was estimated
};

/// A job as far as it is known. `world`: of the processes that check, which for `plan` are not the
/// ranks of the job.
struct JobFacts {
  const Communicator& world;
  const Config& config;
  std::string source = {};  ///< the config's file; at kConfig
  JobKind kind = JobKind::kTrain;
  bool evaluates = false;           ///< does `infer` compare with labels?
  std::int64_t ranks = 1;           ///< of the job
  const GraphFile* file = nullptr;  ///< from kGraph on
  const GraphInfo* graph = nullptr;
  const VertexPartitionInfo* order = nullptr;  ///< graph.order, with one; from kGrid on
  const JobSize* size = nullptr;               ///< its config resolved
  std::string device = {};                     ///< where it computes: "on the CPU"
  const PlannedJob* estimated = nullptr;       ///< at kMemory
  MemoryOffer memory = {};                     ///< of a rank
  log::Listener listener = {};                 ///< on rank 0
};

/// Collective over facts.world. Throws the UserError, on every rank, of the first check of that
/// moment that fails; where memory may be short and that is no error, the listener is warned.
void check_job(Moment moment, const JobFacts& facts);

}  // namespace espalier
