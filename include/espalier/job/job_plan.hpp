// A plan: what a job will need, known before it runs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "espalier/feature/row_storage.hpp"
#include "espalier/job/device.hpp"
#include "espalier/plan/machine.hpp"
#include "espalier/plan/memory_verdict.hpp"
#include "espalier/plan/stage_model.hpp"

namespace espalier {

/// What the peak would be with another number of copies.
struct CopiesChoice {
  std::int64_t replication = 1;
  double bytes = 0;
  bool fits = false;  ///< a GPU's memory, too
};

/// Counted where that is possible. Whether it fits, and what would, is judged as a run is: from
/// degrees (memory_verdict.hpp).
struct Plan : PlannedJob {
  PlannedJob estimated;    ///< as the verdict sees it
  MemoryOffer offer;       ///< of a rank
  Threads threads_chosen;  ///< and by whose word
  std::optional<Machine> machine;

  PeakMemory memory;                 ///< as counted
  PeakMemory by_degrees;             ///< what the verdict goes by, and the next two
  std::string does_not_fit;          ///< the verdict; empty: it fits
  std::vector<CopiesChoice> copies;  ///< of every divisor of the ranks
  std::int64_t largest_bulk = 0;     ///< that fits; 0: none does
  std::optional<DiskCounts> disk;    ///< what an epoch reads of rows on disk, where it was counted
  StageCosts costs;
  std::map<std::string, double> seconds;  ///< empty without a machine

  bool moves_samples() const { return epoch.parts() > 1; }
  bool reads_disk_at_a_rate() const { return disk && machine && machine->disk_gbs > 0; }
};

struct PlanOptions {
  std::int64_t ranks = 1;            ///< of the job
  std::string memory_per_rank = {};  ///< as 8GiB; empty: of the config, the machine or this node
  std::string machine = {};          ///< a machine file; empty: no seconds
  bool sampling = false;             ///< of `espalier sample`, not of `train`
  std::int64_t draw = 256;           ///< minibatches of the epoch that are drawn; 0: estimate from
                                     ///< degrees
};

/// For a `world` of one process. Throws UserError where the job would be refused, but for its
/// memory.
Plan plan_job(const Communicator& world, const Config& config, const PlanOptions& options,
              const log::Listener& listener = {});

/// Does it fit (check_job, Moment::kMemory)?
void check_memory(const Communicator& world, const Plan& plan, const log::Listener& listener = {});

/// As report.json has it, and more.
std::string plan_json(const Plan& plan);

}  // namespace espalier
