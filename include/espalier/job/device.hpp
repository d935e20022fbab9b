// Which processor a job computes on, a GPU for each rank or the CPU, and by how many threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "espalier/base/config.hpp"
#include "espalier/base/cuda.hpp"
#include "espalier/base/log.hpp"
#include "espalier/comm/session.hpp"

namespace espalier {

/// "fp32", "tf32" or "bf16".
Precision precision_of(const std::string& name);

struct Device {
  std::shared_ptr<const Cuda> gpu;  ///< null: the CPU
  std::int64_t memory = 0;          ///< free bytes of the GPU for this rank; ranks that share one
                                    ///< have equal parts
  int sharers = 1;                  ///< the most ranks that share a GPU
  std::string words;                ///< "on the CPU (no GPU: no CUDA-capable device is detected)"

  const char* name() const { return gpu ? "cuda" : "cpu"; }
};

/// Collective. What run.device asks for: with "auto" GPUs when every rank sees one. Rank r of a
/// node takes GPU r modulo the number of GPUs that it sees. Throws UserError(kUsage) when GPUs
/// are asked for and a rank has none.
Device choose_device(const Communicator& world, const NodePlace& node, const Config& config);

// How many threads a rank computes with, and who says so.

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
