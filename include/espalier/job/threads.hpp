// How many threads a rank computes with, and who says so.
#pragma once

#include <string>

#include "espalier/base/config.hpp"
#include "espalier/base/log.hpp"

namespace espalier {

struct Threads {
  int count = 1;
  std::string source;  ///< "run.threads", "OMP_NUM_THREADS", "its share of the cores"

  /// "1 thread per rank (run.threads)"; `of`: "per rank", "each".
  std::string in_words(const char* of) const;
};

/// What `asked` says (run.threads), or else the environment: OMP_NUM_THREADS, of a list the first
/// number, then SLURM_CPUS_PER_TASK; or else `share`, the rank's of the cores. A variable that is
/// no number of threads is passed over, with a warning to the listener.
Threads choose_threads(const AutoInt& asked, std::int64_t share, const log::Listener& listener = {});

}  // namespace espalier
