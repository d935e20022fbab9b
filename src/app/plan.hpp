// A plan: what a job will need, known before it runs.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "espalier/plan/machine.hpp"
#include "espalier/plan/peak_memory.hpp"
#include "espalier/plan/stage_model.hpp"
#include "threads.hpp"

namespace espalier {

/// What the peak would be with another number of copies.
struct CopiesChoice {
  std::int64_t replication = 1;
  double bytes = 0;
};

struct Plan {
  JobSize job;                ///< its config resolved: replication, bulk and batches_per_step
                              ///< are numbers
  std::string memory_source;  ///< who says what a rank has
  PlannedEpoch epoch;
  EpochWork work;
  std::vector<EvaluationWork> evaluations;
  std::array<std::vector<double>, 3> judged;  ///< vertices of each split, by rank
  Threads threads;
  std::optional<Machine> machine;

  PeakMemory memory;
  std::vector<CopiesChoice> copies;  ///< of every divisor of the ranks
  std::int64_t largest_bulk = 0;     ///< that fits; 0: none does
  std::int64_t largest_depth = 0;    ///< run.prefetch_steps that fits; 0: none does
  StageCosts costs;
  std::map<std::string, double> seconds;  ///< empty without a machine

  bool fits() const {
    return memory.bytes() <= static_cast<double>(job.host_memory) &&
           (!job.gpu || device_bytes() <= static_cast<double>(job.device_memory));
  }
  /// Of a rank's GPU, without minibatches and activations.
  double device_bytes() const {
    return bytes_on_device(job, epoch.replication) +
           (topology_fits_device(job, epoch.replication)
                ? resident_memory(job.graph, job.config, job.ranks, epoch.replication, job.training,
                                  largest_part(job, epoch.replication))
                      .topology
                : 0);
  }
};

/// A page for people.
std::string plan_page(const Plan& plan);

/// The fields of a run's report.json, and "memory", "schedules_compared", "drawn" beside them.
std::string plan_json(const Plan& plan);

}  // namespace espalier
