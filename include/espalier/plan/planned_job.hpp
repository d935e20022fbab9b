// A job on paper: what its minibatches and evaluations are expected to be, and by that the most
// memory that a rank holds at once, item by item: what the kernel will report as VmHWM. `plan`
// counts them where it can; the verdict whether a job fits goes by degrees alone, so that `plan`
// and the run on any number of ranks give the same one.
//
// A job passes through phases: it loads, then samples windows, computes steps and evaluates. The
// peak is that of the fullest phase. Sizes of minibatches come from the epoch's own samples
// (sample/counted_work.hpp); what is held at each size is asked of the rooms that hold it
// (base/footprint.hpp). docs/plan.md says how far it was off.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "espalier/infer/evaluation_work.hpp"
#include "espalier/plan/memory.hpp"
#include "espalier/sample/counted_work.hpp"

namespace espalier {

struct PlannedJob {
  JobSize job;  ///< its config resolved: replication, bulk and batches_per_step are numbers
  PlannedEpoch epoch;
  EpochWork work;
  std::vector<EvaluationWork> evaluations;            ///< [l]: of layer l + 1; empty
                                                      ///< without training
  std::array<std::vector<double>, 3> evaluated = {};  ///< vertices of each split, by rank
  int threads = 1;
  double program = 0;  ///< bytes of the program, its libraries and MPI
};

/// The epoch of a job whose config is resolved; who owns what and groups of batches are left to the
/// caller.
PlannedEpoch planned_epoch(const JobSize& job);

/// What a chunk of exact evaluation may read in a layer (from 1).
ChunkLimit evaluation_chunks(const JobSize& job, std::int64_t replication, std::size_t layer);

/// Evaluations, as if edges lay anywhere; entries of the longest row. None without training.
std::vector<EvaluationWork> estimate_evaluations(const JobSize& job, const PlannedEpoch& epoch,
                                                 double longest_row);

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

/// Of a rank that computes on the CPU; with a GPU what is left in memory of the host.
PeakMemory peak_memory(const PlannedJob& planned);

/// Bytes of the GPU of a rank while it samples windows and computes steps.
double minibatches_on_device(const PlannedJob& planned);

/// Is what stays in the memory of a rank's GPU within that? True without one.
bool fits_device(const PlannedJob& planned);

/// The largest sampler.bulk and run.prefetch_steps, up to those of the job, with which a rank needs
/// at most so many bytes, and on a GPU what that has; 0: none does.
std::int64_t largest_bulk(const PlannedJob& planned, double bytes);
std::int64_t largest_depth(const PlannedJob& planned, double bytes);

}  // namespace espalier
