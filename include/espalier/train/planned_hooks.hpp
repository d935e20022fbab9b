// What the hooks of a step (step_hook.hpp) answer before a job runs, on grids that need not exist:
// what they refuse, what they keep, what is to be said of them. The check of a job and `plan` go
// through all parts and know none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/base/config.hpp"
#include "espalier/graph/graph_file.hpp"

namespace espalier {

/// A training on paper, as a rank sees it.
struct PlannedTraining {
  const GraphInfo& graph;
  const Config& config;
  std::int64_t ranks = 1, replication = 1;
  double share = 1;               ///< of the vertices that the rank with most of them has
  std::int64_t batches = 1;       ///< of an epoch
  std::int64_t together = 1;      ///< minibatches of a step, over all ranks
  double parameters = 0;          ///< numbers that are trained, but for rows
  std::vector<double> rows = {};  ///< |F[l]| of a minibatch, l = 0 .. L, rather too many
  double rows_ahead = 0;          ///< input rows of a window's minibatches; 0: not known

  std::int64_t steps() const { return (batches + together - 1) / together; }
};

/// Bytes that a part keeps on a rank from its beginning to its end.
struct KeptMemory {
  std::string name;
  double on_device = 0;  ///< of the GPU, where one computes; else of the host, too
  double on_host = 0;
  double all() const { return on_device + on_host; }
};

struct PlannedHook {
  std::vector<KeptMemory> kept = {};
  double rows_kept = 0;             ///< of that, StepHook::bytes
  bool holds_cache = false;         ///< are those in run.cache_memory, evaluations included?
  std::string cures = {};           ///< of too much of it: ", a smaller run.cache_memory"
  bool draws = false;               ///< does it draw the minibatches of a step itself?
  std::string bias = {};            ///< what makes steps estimates of something else than
                                    ///< evaluation computes: "rows of history, of earlier steps"
  std::string not_prefetched = {};  ///< which key makes bytes of rows less than planned, and
                                    ///< what it does
  std::string warning = {};
};

/// Of the parts that a job has; empty ones of others.
std::vector<PlannedHook> planned_hooks(const PlannedTraining& training);

/// Throws UserError(kUsage) for keys of parts that do not go together with others.
void check_parts(const Config& config);

}  // namespace espalier
