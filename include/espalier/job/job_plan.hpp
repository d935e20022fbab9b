// A plan: what a job will need, known before it runs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "espalier/feature/row_storage.hpp"
#include "espalier/job/threads.hpp"
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
};

/// A page for people.
std::string plan_page(const Plan& plan);

/// The fields of a run's report.json, and "memory", "schedules_compared", "drawn" beside them.
std::string plan_json(const Plan& plan);

}  // namespace espalier
