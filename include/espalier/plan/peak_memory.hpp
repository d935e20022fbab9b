// The most memory that a rank of a job holds at once, item by item: what the kernel will
// report as VmHWM.
//
// A job passes through phases: it loads, then samples windows, computes steps and evaluates. The
// peak is that of the fullest phase. Sizes of minibatches come from the epoch's own samples
// (sample/counted_work.hpp); what is held at each size is asked of the rooms that hold it
// (base/footprint.hpp). docs/plan.md says how far it was off.
#pragma once

#include <string>
#include <vector>

#include "espalier/infer/evaluation_work.hpp"
#include "espalier/plan/memory.hpp"
#include "espalier/sample/counted_work.hpp"

namespace espalier {

/// What a chunk of exact evaluation may read in a layer (from 1).
ChunkLimit evaluation_chunks(const JobSize& job, std::int64_t replication, std::size_t layer);

struct MemoryItem {
  std::string name;
  double bytes = 0;
};

struct MemoryPhase {
  std::string name;  ///< "load", "sample", "step", "evaluate"
  std::vector<MemoryItem> items;
  double total() const;
};

struct PeakMemory {
  std::vector<MemoryPhase> phases;
  const MemoryPhase& fullest() const;
  double bytes() const { return fullest().total(); }
};

/// What an inference keeps beside the graph, rows and network (inference_memory), until it ends.
std::vector<MemoryItem> kept_by_inference(const JobSize& job, std::int64_t replication);

/// Of a rank that computes on the CPU; with a GPU what is left in memory of the host. `layers[l]`:
/// evaluation of layer l + 1. `program`: bytes of the program, its libraries and MPI.
PeakMemory peak_memory(const JobSize& job, const PlannedEpoch& epoch, const EpochWork& work,
                       const std::vector<EvaluationWork>& layers, double program, int threads);

}  // namespace espalier
