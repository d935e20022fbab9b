// Execution spaces: the first argument of every leaf operation says where it runs.
// `op(const Cpu&, ...)` and `op(const Cuda&, ...)` are declared side by side in one header.
#pragma once

namespace espalier {

/// Runs on this process's cores. `threads` is the number of OpenMP threads a leaf may use.
struct Cpu {
  int threads = 1;
};

}  // namespace espalier
