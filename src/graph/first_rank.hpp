// Imports: rank 0 reads and the others wait.
#pragma once

#include <filesystem>

#include "espalier/base/counted.hpp"
#include "espalier/base/error.hpp"
#include "espalier/comm/agree.hpp"

namespace espalier {

/// Collective. Runs `work` on rank 0; its error is everyone's.
template <class Work>
void on_first_rank(const Communicator& comm, Work work) {
  agree(comm, [&] {
    if (comm.rank() != 0) return;
    try {
      work();
    } catch (const std::filesystem::filesystem_error& error) {
      // A folder without permission, a name too long.
      input_error("{}: {}", error.path1().string(), error.code().message());
    }
  });
}

}  // namespace espalier
