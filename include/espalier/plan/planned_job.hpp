// A job on paper: what its minibatches and evaluations are expected to be, and by that the peak of
// its memory. `plan` counts them where it can; the verdict whether a job fits goes by degrees
// alone, so that `plan` and the run on any number of ranks give the same one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/graph/degrees.hpp"
#include "espalier/plan/peak_memory.hpp"

namespace espalier {

struct PlannedJob {
  JobSize job;  ///< its config resolved: replication, bulk and batches_per_step are numbers
  PlannedEpoch epoch;
  EpochWork work;
  std::vector<EvaluationWork> evaluations;
  int threads = 1;
  double program = 0;  ///< bytes, as for peak_memory
};

/// The epoch of a job whose config is resolved; who owns what and groups of batches are left to the
/// caller.
PlannedEpoch planned_epoch(const JobSize& job);

/// Evaluations with so many copies, as if edges lay anywhere. None without training.
std::vector<EvaluationWork> estimate_evaluations(const JobSize& job, const PlannedEpoch& epoch,
                                                 std::int64_t replication);

/// Does estimating want self loops beside the entries of the file?
std::int64_t loops_of_rows(const Config& config);

/// Fills in work and evaluations from the degrees of the matrix.
void estimate(PlannedJob& planned, const DegreeHistogram& degrees);

PeakMemory peak_memory(const PlannedJob& planned);

/// The largest sampler.bulk and run.prefetch_steps, up to those of the job, with which a rank needs
/// at most so many bytes; 0: none does.
std::int64_t largest_bulk(const PlannedJob& planned, double bytes);
std::int64_t largest_depth(const PlannedJob& planned, double bytes);

/// Of a rank's GPU, without minibatches and activations.
double device_bytes(const PlannedJob& planned);

}  // namespace espalier
