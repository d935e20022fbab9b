// Does a job fit? One estimate, from the degrees of the graph, gives the verdict of `plan` and of
// the run, on any number of processes.
#pragma once

#include <cstdint>
#include <string>

#include "espalier/comm/communicator.hpp"
#include "espalier/graph/graph_facts.hpp"
#include "espalier/graph/graph_file.hpp"
#include "espalier/plan/planned_job.hpp"

namespace espalier {

/// What the host memory of a rank is.
struct MemoryOffer {
  std::int64_t bytes = 0;
  std::string source;    ///< by whose word: "run.memory_limit"
  bool binding = false;  ///< did somebody say so, or is it what seems to be free?
};

/// Collective. Of a rank among so many on this node: run.memory_limit, or what is free; the least
/// of all ranks.
MemoryOffer offered_memory(const Communicator& world, const Config& config, std::int64_t ranks_here);

/// Jobs on a graph as they are judged: minibatches and evaluations estimated from the degrees in
/// the file. Of an inference only what stays in memory is known.
class JobEstimates {
 public:
  /// Collective over `comm`, whose processes need not be the ranks of the job.
  JobEstimates(const Communicator& comm, const GraphFile& file, const JobSize& job, int threads);

  /// The job with numbers for every "auto" of its config, as it will run: by all that a rank has;
  /// where it does not fit so, "auto" and chunks of evaluation go by less, and where that is not
  /// enough hidden rows spill, if they may. Where nothing fits, what needs least: so what is said
  /// to be needed does not depend on what there is.
  PlannedJob fit(const JobSize& asked, const MemoryOffer& offer) const;

 private:
  PlannedJob estimate(JobSize job) const;

  DegreeHistogram degrees_;
  double program_;
  int threads_;
};

/// What the host memory of a rank is judged by.
PeakMemory judged_memory(const PlannedJob& planned);

/// Is that enough, and what its GPU has?
bool fits(const PlannedJob& planned, const MemoryOffer& offer);

struct MemoryVerdict {
  std::string misfit = {};  ///< "does not fit: a rank needs 174.0 MiB (...) and has 95.4 MiB
                            ///< (run.memory_limit); use more ranks, ...", of the host or of its
                            ///< GPU; empty: it fits
  bool binding = false;     ///< is what it has certain? A GPU's memory is
};
MemoryVerdict judge_memory(const PlannedJob& planned, const MemoryOffer& offer);

}  // namespace espalier
